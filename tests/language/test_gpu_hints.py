"""Statements and arguments of a kernel for a GPU: without an effect, with one note; or refused with the way that works here."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T
from tilelang_npu import TileError
from tilelang_npu.language import gpu_hints
from tilelang_npu.layout import make_mma_swizzle_layout
from tilelang_npu.runtime.settings.log import TileWarning

ROWS, COLUMNS = 40, 96  # 40 rows in tiles of 16: the last tile is not whole


def _notes(kernel: Callable[..., Any], *arrays: Any) -> tuple[Any, list[str]]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = kernel(*arrays)
    return found, [str(one.message) for one in caught if str(one.message).startswith("T191")]


def _with_hints(dtype: str, hinted: bool) -> Any:
    def swap(i: Any, j: Any) -> Any:
        return [j, i]

    @tilelang.jit(out_idx=[-1])
    def factory() -> Any:
        @T.prim_func
        def main(A: T.Tensor((ROWS, COLUMNS), dtype), B: T.Tensor((ROWS, COLUMNS), dtype)) -> None:
            with T.Kernel(T.ceildiv(ROWS, 16), threads=128) as block:
                a = T.alloc_shared((16, COLUMNS), dtype)
                b = T.alloc_fragment((16, COLUMNS), dtype)
                top = T.alloc_fragment((16,), dtype)
                if hinted:
                    T.disable_warp_group_reg_alloc()
                    T.annotate_layout({a: make_mma_swizzle_layout(a), b: T.Fragment((16, COLUMNS), lambda i, j: (i, j)),
                                       B: T.Layout((ROWS, COLUMNS), swap)})
                    T.assume(block >= 0)
                    T.device_assert(block < 3, "three blocks")
                    T.async_copy(A[block * 16, 0], a)
                    T.ptx_wait_group(0)
                    T.sync_threads()
                    T.copy(a, b, annotations={"anything": 1}, prefer_instruction="tma")
                    T.reduce_max(b, top, dim=1, batch=2, nan_propagate=True)
                    for i, j in T.Parallel(16, COLUMNS, loop_layout=T.Fragment((16, COLUMNS), lambda i, j: (i, j))):
                        b[i, j] = b[i, j] - top[i]
                    T.pdl_trigger()
                else:
                    T.copy(A[block * 16, 0], a)
                    T.copy(a, b)
                    T.reduce_max(b, top, dim=1)
                    for i, j in T.Parallel(16, COLUMNS):
                        b[i, j] = b[i, j] - top[i]
                T.copy(b, B[block * 16, 0])

        return main

    return factory()


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("interpret", [False, True])
def test_hints_change_no_value_and_are_one_note(dtype: str, interpret: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if interpret:
        monkeypatch.setenv("TILELANG_NPU_INTERPRET", "1")
    a = np.random.default_rng(0).standard_normal((ROWS, COLUMNS)).astype(dtype)
    found, notes = _notes(lambda x: _with_hints(dtype, True)(x), a)
    np.testing.assert_array_equal(found, a - a.max(1, keepdims=True))
    if interpret:
        return
    (note,) = notes
    for part in ("T.disable_warp_group_reg_alloc", "T.annotate_layout of b", "T.annotate_layout of B, whose elements stay in",
                 "T.assume", "T.device_assert, which is not checked", "T.ptx_wait_group", "T.sync_threads",
                 "annotations= of T.copy", "prefer_instruction= of T.copy", "batch= of T.reduce_max",
                 "loop_layout= of T.Parallel", "T.pdl_trigger"):
        assert part in note
    assert _notes(lambda x: _with_hints(dtype, False)(x), a)[1] == []


def _kernel_of(statement: Callable[[Any], None]) -> Any:
    run = T.macro(statement)

    @tilelang.jit(out_idx=[-1])
    def factory() -> Any:
        @T.prim_func
        def main(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")) -> None:
            with T.Kernel(1, threads=64):
                a = T.alloc_shared((64,), "float32")
                T.copy(A, a)
                run(a)
                T.copy(a, B)

        return main

    return factory()


CALLS: dict[str, Callable[[Any], None]] = {
    "annotate_compile_flags": lambda a: T.annotate_compile_flags("-O3"),
    "annotate_consumer_reg_alloc": lambda a: T.annotate_consumer_reg_alloc(240),
    "annotate_l2_hit_ratio": lambda a: T.annotate_l2_hit_ratio({a: 0.5}),
    "annotate_min_blocks_per_sm": lambda a: T.annotate_min_blocks_per_sm(2),
    "annotate_pass_configs": lambda a: T.annotate_pass_configs({"tl.x": True}),
    "annotate_producer_reg_dealloc": lambda a: T.annotate_producer_reg_dealloc(24),
    "annotate_restrict_buffers": lambda a: T.annotate_restrict_buffers(a),
    "cp_async_wait_group": lambda a: T.cp_async_wait_group(0), "dec_max_nreg": lambda a: T.dec_max_nreg(40),
    "disable_warp_group_reg_alloc": lambda a: T.disable_warp_group_reg_alloc(),
    "fence_proxy_async": lambda a: T.fence_proxy_async(), "inc_max_nreg": lambda a: T.inc_max_nreg(240),
    "no_set_max_nreg": lambda a: T.no_set_max_nreg(), "pdl_sync": lambda a: T.pdl_sync(),
    "pdl_trigger": lambda a: T.pdl_trigger(), "ptx_commit_group": lambda a: T.ptx_commit_group(),
    "ptx_wait_group": lambda a: T.ptx_wait_group(1), "set_max_nreg": lambda a: T.set_max_nreg(240, 1),
    "sync_threads": lambda a: T.sync_threads(), "sync_warp": lambda a: T.sync_warp(),
    "warpgroup_fence_operand": lambda a: T.warpgroup_fence_operand(a),
}


def test_every_hint_has_a_call_here() -> None:
    assert CALLS.keys() == set(gpu_hints.__all__) - {"assume", "async_copy", "device_assert"}


def _refusal(kernel: Callable[[], Any]) -> TileError:
    with pytest.raises(TileError) as caught:
        kernel()(np.zeros(64, np.float32))
    return caught.value


@pytest.mark.parametrize("name", ["assume", "device_assert"])
def test_a_condition_that_is_false_when_the_kernel_is_compiled_is_an_error(name: str) -> None:
    def statement(a: Any) -> None:
        getattr(T, name)(1 > 2)

    assert _refusal(lambda: _kernel_of(statement)).code == "T148"


def test_the_interpreter_checks_a_device_assertion(monkeypatch: pytest.MonkeyPatch) -> None:
    def statement(a: Any) -> None:
        T.device_assert(a[3] > 1.0, "a[3] is large")

    with pytest.warns(TileWarning, match="device_assert, which is not checked"):
        _kernel_of(statement)(np.zeros(64, np.float32))
    monkeypatch.setenv("TILELANG_NPU_INTERPRET", "1")
    assert "a[3] is large" in str(_refusal(lambda: _kernel_of(statement)))


@pytest.mark.parametrize("interpret", [False, True])
@pytest.mark.parametrize("name", ["reduce_max", "reduce_min", "reduce_absmax"])
def test_a_reduction_keeps_nan_and_refuses_to_drop_it(name: str, interpret: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if interpret:
        monkeypatch.setenv("TILELANG_NPU_INTERPRET", "1")

    def statement(a: Any) -> None:
        out = T.alloc_fragment((1,), "float32")
        getattr(T, name)(a, out, dim=0, nan_propagate=False)

    assert _refusal(lambda: _kernel_of(statement)).code == "T190"


@T.macro
def _divide(length: Any, parts: Any, part: Any, start: T.Ref, end: T.Ref) -> None:  # type: ignore[valid-type]
    size = T.ceildiv(length, parts)
    start = part * size
    end = T.min(part * size + size, length)


@T.macro
def _bump(x: T.Ref) -> None:  # type: ignore[valid-type]
    x += 3.0


@T.macro
def _more(x: T.Ref) -> Any:  # type: ignore[valid-type]
    return x + 3.0


@pytest.mark.parametrize("interpret", [False, True])
def test_a_macro_writes_the_callers_variables(interpret: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if interpret:
        monkeypatch.setenv("TILELANG_NPU_INTERPRET", "1")

    @tilelang.jit(out_idx=[-1])
    def factory() -> Any:
        @T.prim_func
        def main(A: T.Tensor((7, 64), "float32"), B: T.Tensor((7, 64), "float32")) -> None:
            with T.Kernel(2, threads=64) as block:
                start = T.alloc_var("int32")
                end = T.alloc_var("int32")
                a = T.alloc_fragment((1, 64), "float32")
                _divide(7, 2, block, start, end)
                for row in T.serial(start, end):
                    T.copy(A[row, 0], a)
                    for i, j in T.Parallel(1, 64):
                        a[i, j] = _more(a[i, j])
                    T.copy(a, B[row, 0])

        return main

    a = np.random.default_rng(0).standard_normal((7, 64)).astype(np.float32)
    np.testing.assert_array_equal(factory()(a), a + np.float32(3))


@pytest.mark.parametrize("interpret", [False, True])
def test_a_macro_that_assigns_a_reference_takes_a_variable_only(interpret: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if interpret:
        monkeypatch.setenv("TILELANG_NPU_INTERPRET", "1")

    def statement(a: Any) -> None:
        _bump(a[1])

    refused = _refusal(lambda: _kernel_of(statement))
    assert refused.code == "T145"
    assert "T.alloc_var" in refused.help


@pytest.mark.parametrize("interpret", [False, True])
def test_all_blocks_meet_at_sync_grid(interpret: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if interpret:
        monkeypatch.setenv("TILELANG_NPU_INTERPRET", "1")

    @tilelang.jit(out_idx=[-1])
    def factory() -> Any:
        @T.prim_func
        def main(A: T.Tensor((4, 64), "float32"), Part: T.Tensor((4, 64), "float32"), B: T.Tensor((4, 64), "float32")) -> None:
            with T.Kernel(4, threads=64) as block:
                a = T.alloc_fragment((1, 64), "float32")
                T.copy(A[block, 0], a)
                for i, j in T.Parallel(1, 64):
                    a[i, j] = a[i, j] + 1
                T.copy(a, Part[block, 0])
                T.sync_grid()
                T.copy(Part[3 - block, 0], a)
                T.copy(a, B[block, 0])

        return main

    a = np.random.default_rng(0).standard_normal((4, 64)).astype(np.float32)
    np.testing.assert_array_equal(factory()(a, np.zeros_like(a)), (a + np.float32(1))[::-1])


def test_a_lambda_can_be_passed_on_but_not_called() -> None:
    def statement(a: Any) -> None:
        swap = lambda i: -i  # noqa: E731
        a[0] = swap(3)

    assert "`lambda`" in str(_refusal(lambda: _kernel_of(statement)))


@pytest.mark.parametrize(("name", "way"), [
    ("alloc_tmem", "T.gemm"), ("tcgen05_gemm", "T.gemm"), ("wgmma_gemm", "T.gemm"), ("alloc_barrier", "T.copy"),
    ("tma_copy", "T.copy"), ("get_thread_binding", "T.Parallel"), ("shfl_xor", "T.reduce_sum"),
    ("warp_reduce_max", "T.reduce_max"), ("ClusterKernel", "T.copy"), ("import_source", "written in T alone"),
    ("ldg128", "T.copy"),
])
def test_what_only_a_gpu_has_is_refused_with_the_portable_way(name: str, way: str) -> None:
    def statement(a: Any) -> None:
        getattr(T, name)(1)

    refused = _refusal(lambda: _kernel_of(statement))
    assert refused.code == "T190"
    assert way in refused.help


@pytest.mark.parametrize("name", CALLS)
def test_a_hint_alone(name: str) -> None:
    a = np.arange(64, dtype=np.float32)
    found, (note,) = _notes(lambda x: _kernel_of(_written(name))(x), a)
    np.testing.assert_array_equal(found, a)
    assert f"T.{name}" in note


def _written(name: str) -> Callable[[Any], None]:
    def statement(a: Any) -> None:
        call(a)

    call = CALLS[name]
    return statement
