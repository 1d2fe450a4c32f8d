"""Scripts for GPUs import these modules and names of TileLang and TVM, and they describe the simulated chip."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T
from tilelang_npu import TileError, compat
from tilelang_npu.runtime.settings import environment


@pytest.fixture(autouse=True)
def _installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(environment.GPU.name, raising=False)
    compat.install()


IMPORTS = (
    "from tilelang.carver.arch import driver, CUDA, CDNA", "from tilelang.carver.roller.rasterization import NoRasterization",
    "from tilelang.contrib import nvcc", "from tilelang.utils.target import determine_target",
    "from tilelang.backend.target import determine_target", "from tilelang.utils.device import get_current_device",
    "from tilelang.profiler.bench import do_bench, suppress_stdout_stderr", "from tilelang.autotuner.tuner import AutoTuner",
    "from tilelang.tileop.base import GemmWarpPolicy", "from tilelang.cuda.intrinsics import make_mma_swizzle_layout",
    "from tilelang.engine.callback import register_cuda_postproc_callback", "from tilelang.transform import simplify_prim_func",
    "from tilelang.layout import Layout, Fragment, make_linear_layout", "import tvm.tirx as tx", "from tvm import tirx as tir",
    "from tvm.tirx import PrimExpr, const", "from tvm.tirx.stmt_functor import ir_transform, post_order_visit",
    "from tvm.ir import PrimExpr", "from tvm.target import Target", "from tilelang import tvm\ntvm.tirx.const",
)


@pytest.mark.parametrize("text", IMPORTS)
def test_an_import_of_a_gpu_script_works(text: str) -> None:
    exec(text, {})


def test_a_test_for_a_compute_capability_runs_if_it_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    def skips(decorator: Any) -> bool:
        def test() -> None:
            pass

        return hasattr(decorator(test), "pytestmark")

    testing: Any = import_module("tilelang.testing")
    assert skips(testing.requires_cuda)
    monkeypatch.setenv(environment.GPU.name, "1")
    assert not skips(testing.requires_cuda)
    assert not skips(testing.requires_cuda_compute_version(8))
    assert skips(testing.requires_cuda_compute_version_ge(9, 0))
    assert skips(testing.requires_rocm)


def test_a_missing_part_of_tvm_is_named_where_it_is_called() -> None:
    part: Any = import_module("tvm.tirx.stmt_functor")
    with pytest.raises(TileError, match=r"tvm\.tirx\.stmt_functor\.post_order_visit"):
        part.post_order_visit(None, None)


def test_scalars_of_tirx_are_the_kernels() -> None:
    tirx: Any = import_module("tvm.tirx")

    @tilelang.jit(out_idx=[-1])
    def factory() -> Any:
        @T.prim_func
        def main(A: T.Tensor((64,), "int32"), B: T.Tensor((64,), "float32")) -> None:
            with T.Kernel(1, threads=64):
                a = T.alloc_shared((64,), "int32")
                b = T.alloc_shared((64,), "float32")
                T.copy(A, a)
                for i in T.Parallel(64):
                    b[i] = tirx.Cast("float32", tirx.Select(a[i] > 3, (a[i] & tirx.const(7, "int32")) << 1, a[i]))
                T.copy(b, B)

        return main

    a = np.arange(64, dtype=np.int32)
    np.testing.assert_array_equal(factory()(a), np.where(a > 3, (a & 7) << 1, a).astype(np.float32))


def test_arguments_about_measuring_are_accepted_by_tuning() -> None:
    @tilelang.autotune(configs=[{"tile": 64}, {"tile": 128}], early_stop=True, early_stop_factor=2.0)
    @tilelang.jit(out_idx=[-1])
    def factory(n: int, tile: int = 32) -> Any:
        @T.prim_func
        def main(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32")) -> None:
            with T.Kernel(T.ceildiv(n, tile), threads=64) as block:
                a = T.alloc_shared((tile,), "float32")
                T.copy(A[block * tile], a)
                T.copy(a, B[block * tile])

        return main

    kernel = factory(256)
    profiler = kernel.get_profiler()
    (given,) = profiler._get_inputs()
    np.testing.assert_array_equal(np.asarray(profiler.func(given)), np.asarray(given))
    tuner = tilelang.AutoTuner.from_kernel(lambda tile: None, [{"tile": 1}])
    with pytest.raises(TileError, match="no argument 'early_stopp'"):
        tuner.run(early_stopp=True)


def test_hints_of_the_roller_have_what_scripts_read() -> None:
    carver: Any = import_module("tilelang.carver.template")
    arch: Any = import_module("tilelang.carver.arch")
    template = carver.MatmulTemplate(M=512, N=512, K=512, in_dtype=T.float16).with_arch(arch.CUDA("cuda"))
    assert template.equivalent_function() is not None
    hint = template.recommend_hints(topk=2)[0]
    assert len(hint.block) == len(hint.warp) == 2
    assert hint.pipeline_stage > 0


@pytest.mark.parametrize(("name", "width"), [
    ("float16", 2), ("tfloat32", 4), ("half", 2), ("long", 8), ("short", 2), ("uint", 4)])
def test_an_element_type_has_the_fields_of_a_gpus(name: str, width: int) -> None:
    kind = getattr(T, name)
    assert (kind.bytes, kind.bits, kind.itemsize, kind.lanes) == (width, 8 * width, width, 1)
