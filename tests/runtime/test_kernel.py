"""A compiled kernel: its results, its texts, its stages."""

from __future__ import annotations

import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T
from samples import SYNC, doubled, product, scaled, symbolic_rows
from tilelang_npu import TileError
from tilelang_npu.dialects.text import parse_module, print_module
from tilelang_npu.runtime.settings.file_writing import file_name
from tilelang_npu.runtime.settings.log import TileWarning


def test_results_are_returned(rng: np.random.Generator) -> None:
    a = rng.standard_normal((40, 64)).astype(np.float32)
    b = doubled(40, 64)(a)
    assert isinstance(b, np.ndarray)
    np.testing.assert_array_equal(b, a + a)


def test_results_in_the_callers_array(rng: np.random.Generator) -> None:
    a, b = rng.standard_normal((16, 64)).astype(np.float32), np.empty((16, 64), np.float32)
    result = tilelang.compile(scaled(), target="ascendc", pass_configs=SYNC)(a, 2.5, b)
    assert result == []
    np.testing.assert_array_equal(b, a * np.float32(2.5))


def test_several_results_are_a_list_in_the_order_asked_for(rng: np.random.Generator) -> None:
    kernel = tilelang.compile(product(), out_idx=[2], target="npuir")
    a, b = rng.standard_normal((128, 64)).astype(np.float16), rng.standard_normal((64, 64)).astype(np.float16)
    np.testing.assert_allclose(kernel(a, b), a.astype(np.float32) @ b.astype(np.float32), rtol=1e-4, atol=1e-4)
    assert tilelang.compile(product(), target="npuir")(a, b, np.zeros((128, 64), np.float32)) is None


def test_workspace_is_not_returned(rng: np.random.Generator) -> None:
    a = rng.standard_normal((16, 64)).astype(np.float32)
    kernel = tilelang.compile(scaled(), workspace_idx=-1, target="ascendc", pass_configs=SYNC)
    assert kernel(a, 2.0) == []
    with pytest.raises(TileError, match="T401"):
        kernel(a, 2.0, a)


@pytest.mark.parametrize("rows", [16, 64, 72])
def test_a_symbolic_size_is_bound_by_the_call(rows: int, rng: np.random.Generator) -> None:
    kernel = tilelang.compile(symbolic_rows(), out_idx=[-1], target="ascendc", pass_configs=SYNC)
    a = rng.standard_normal((rows, 64)).astype(np.float32)
    np.testing.assert_array_equal(kernel(a), a + a)
    assert kernel.last_launch is not None


def test_stages_have_names_and_texts() -> None:
    kernel = doubled(32, 64)
    stages = kernel.stages()
    assert (stages[0], stages[-1]) == ("tile", "hivm")
    assert "hivm-auto" in stages
    texts = {stage: kernel.mlir(stage) for stage in stages}
    assert "tile.elementwise" in texts["tile"]
    assert "hivm.hir.vadd" in texts["hivm-auto"]
    assert "set_flag" in texts["hivm"]
    assert "set_flag" not in texts["hivm-auto"]
    assert kernel.mlir() == kernel.get_kernel_source() == texts["hivm"]
    for text in texts.values():
        assert print_module(parse_module(text)) == text


def test_forms_of_the_text() -> None:
    kernel = doubled(32, 64)
    assert '"hivm.hir.vadd"' in kernel.mlir(generic=True)
    assert f'"{doubled.function.__code__.co_filename}":' in kernel.mlir(locations=True)
    with pytest.raises(TileError) as caught:
        kernel.mlir("hivm_auto")
    assert caught.value.code == "T710"
    assert "hivm-auto" in caught.value.help


def test_repr_of_a_kernel() -> None:
    kernel = doubled(32, 64)
    assert repr(kernel) == "<tilelang_npu kernel doubled(A, B) for Ascend910B2>"
    assert [parameter.name for parameter in kernel.params] == ["A", "B"]
    assert (kernel.out_idx, kernel.workspace_idx, kernel.dialect) == ([1], [], "ascendc")


def test_profile_looks_at_the_last_launch() -> None:
    kernel = doubled(32, 64)
    traced = kernel.profile((32, 64))
    kernel(np.zeros((32, 64), np.float32))
    assert kernel.profile().launch is kernel.last_launch
    assert kernel.profile().time_us == traced.time_us > 0


def test_profile_takes_shapes_for_arrays() -> None:
    kernel = doubled(32, 64)
    before = kernel.last_launch
    assert kernel.profile((32, 64)).launch.time_us == kernel.profile(A=[32, 64]).launch.time_us == kernel.trace().time_us
    assert kernel.profile((32, 64), (32, 64)).launch.time_us == kernel.trace().time_us, "with memory for the result"
    assert kernel.last_launch is before, "nothing ran"
    with pytest.raises(TileError) as caught:
        tilelang.compile(product(), out_idx=[2], target="npuir").profile((128, 64), (65, 64))
    assert caught.value.code == "T403"
    with pytest.raises(TileError) as caught:
        kernel.profile((32, 64), (32, 64), (32, 64))
    assert caught.value.code == "T401"


def test_texts_are_written_where_asked(tmp_path: Path) -> None:
    tilelang.compile(product(), target="npuir", debug_root_path=tmp_path / "texts")
    assert {file.name for file in (tmp_path / "texts").iterdir()} == {"product.mlir", "product.tile.mlir"}


@pytest.mark.parametrize("name", ["../outside", "/outside", "..", "a/b"])
def test_texts_and_exports_stay_in_their_directory_whatever_the_kernel_is_called(tmp_path: Path, name: str) -> None:
    func = product()
    func.function.__name__ = name
    folder = tmp_path / "deep" / "texts"
    kernel = tilelang.compile(func, target="npuir", debug_root_path=folder)
    assert kernel.name == name
    written = {file_name(name) + end for end in (".mlir", ".tile.mlir")}
    assert {file.name for file in folder.iterdir()} == written
    exported = kernel.export(folder)
    ends = (".mlir", ".auto.mlir", ".json")
    assert {file.name for file in exported} == {file_name(name) + end for end in ends} | {"README.md"}
    assert {file.name for file in folder.iterdir()} == written | {file.name for file in exported}
    assert [*tmp_path.iterdir(), *(tmp_path / "deep").iterdir()] == [tmp_path / "deep", folder]


def test_mlir_bindings(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = tilelang.compile(product(), target="npuir")
    monkeypatch.setattr("tilelang_npu.runtime.reports.mlir_bindings._PACKAGES", ("no_such_package",))
    with pytest.raises(TileError) as caught:
        kernel.mlir_module()
    assert caught.value.code == "T711"
    assert "pip install" in caught.value.help


def test_a_live_module() -> None:
    pytest.importorskip("iree.compiler", reason="the mlir extra is not installed")
    module = tilelang.compile(product(), target="npuir").mlir_module()
    assert module.operation.verify()
    assert module.operation.name == "builtin.module"


def test_an_empty_grid_is_refused() -> None:
    import tilelang_npu.language as T

    n = T.symbolic("n")

    @T.prim_func
    def main(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32")):
        with T.Kernel(n // 64, is_npu=True) as (block, half):
            a = T.alloc_ub((64,), "float32")
            T.copy(A[block * 64], a)
            T.barrier_all()
            T.copy(a, B[block * 64])

    with pytest.raises(TileError) as caught:
        tilelang.compile(main, out_idx=[-1], target="ascendc")(np.zeros(32, np.float32))
    assert caught.value.code == "T406"
    assert caught.value.location is not None
    assert caught.value.location.file == __file__


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_torch_tensors_in_and_out(dtype: str) -> None:
    torch = pytest.importorskip("torch", reason="torch is an optional package; its tests need it")
    a = torch.randn(32, 64).to(getattr(torch, dtype))
    kernel = copying(dtype)
    b = kernel(a)
    assert isinstance(b, torch.Tensor)
    assert b.dtype == a.dtype
    assert torch.equal(a, b)


def copying(dtype: str) -> tilelang.JITKernel:
    import tilelang_npu.language as T

    @T.prim_func
    def main(A: T.Tensor((32, 64), dtype), B: T.Tensor((32, 64), dtype)):
        with T.Kernel(1, is_npu=True) as (block, half):
            a = T.alloc_ub((32, 64), dtype)
            T.copy(A, a)
            T.barrier_all()
            T.copy(a, B)

    return tilelang.compile(main, out_idx=[-1], target="ascendc")


def test_a_hole_in_a_result_is_an_error_each_time() -> None:
    import tilelang_npu.language as T

    @T.prim_func
    def main(A: T.Tensor((64, 64), "float32"), B: T.Tensor((64, 64), "float32")):
        with T.Kernel(2, is_npu=True) as (block, half):
            a = T.alloc_ub((16, 64), "float32")
            T.copy(A[block * 32, 0], a)
            T.barrier_all()
            T.copy(a, B[block * 32, 0])

    kernel = tilelang.compile(main, out_idx=[-1], target="ascendc")
    a = np.ones((64, 64), np.float32)
    for _ in range(2):
        with pytest.raises(tilelang.TileError, match=r"rows 16\.\.31, 48\.\.63 of B are never written: 2048 of 4096") as caught:
            kernel(a)
        assert caught.value.code == "T410"
    b = np.zeros((64, 64), np.float32)
    kernel(a, b)  # the caller's own array keeps what it holds there
    assert b.sum() == 2048


@pytest.mark.parametrize("dialect", ["npuir", "ascendc"])
@pytest.mark.parametrize("kind", ["float32", "float16", "int8"])
@pytest.mark.parametrize("shape", [(2048, 4), (4, 2048), (512, 16), (8192, 1)])
def test_arrays_of_as_many_elements_in_another_shape(dialect: str, kind: str, shape: tuple[int, int]) -> None:
    @T.prim_func
    def main(X: T.Tensor((8, 1024), kind), Y: T.Tensor((8, 1024), kind)):
        with T.Kernel(8, is_npu=True) as (cid, _):
            x = T.alloc_ub((1, 1024), kind)
            T.copy(X[cid, 0], x)
            T.copy(x, Y[7 - cid, 0])

    kernel = tilelang.compile(main, target=dialect, pass_configs=SYNC if dialect == "ascendc" else None)
    x = (np.arange(8192) % 113).astype(kind).reshape(shape)
    y = np.zeros(shape[::-1], kind)
    with pytest.warns(TileWarning, match="T403: [XY] has shape") as reported:
        kernel(x, y)
    assert [str(one.message)[:23] for one in reported] == ["T403: X has shape [8, 1", "T403: Y has shape [8, 1"]
    np.testing.assert_array_equal(y.reshape(8, 1024), x.reshape(8, 1024)[::-1])


def _two_rows_each(rows: int):
    @T.prim_func
    def main(A: T.Tensor((8, 64), "float32"), S: T.Tensor((rows, 1), "float32"), unused: T.Tensor((8,), "int32")):
        with T.Kernel(4, is_npu=True) as (cid, _):
            a = T.alloc_ub((2, 64), "float32")
            s = T.alloc_ub((2, 1), "float32")
            T.copy(A[cid * 2, 0], a)
            T.reduce_sum(a, s, dim=1)
            T.copy(s, S[cid * 2:cid * 2 + 2, 0])

    return main


def test_an_array_that_is_longer_than_declared_is_reached_whole() -> None:
    kernel = tilelang.compile(_two_rows_each(2), target="npuir")
    a, s = np.arange(512, dtype=np.float32).reshape(8, 64), np.zeros((8, 1), np.float32)
    with pytest.warns(TileWarning, match=r"T411: S is declared with shape \[2, 1\], but the array has 8 rows"):
        kernel(a, s, np.zeros(8, np.int32))
    np.testing.assert_array_equal(s[:, 0], a.sum(1))
    assert kernel.last_launch is not None
    with pytest.warns(TileWarning) as reported:
        kernel(a, np.zeros((10, 1), np.float32), np.zeros(8, np.int32))
    assert ["T411" in str(one.message) for one in reported] == [True, False]
    assert "rows 8..9 of S are never written: 2 of 10 elements" in str(reported[1].message)
    with pytest.raises(TileError, match="T403"):
        kernel(a, np.zeros((10, 2), np.float32), np.zeros(8, np.int32))
    with pytest.raises(TileError, match="T403"):
        kernel(a, np.zeros((1, 1), np.float32), np.zeros(8, np.int32))


def test_none_for_what_the_kernel_does_not_touch() -> None:
    kernel = tilelang.compile(_two_rows_each(8), target="npuir")
    a, s = np.ones((8, 64), np.float32), np.zeros((8, 1), np.float32)
    kernel(a, s, None)
    assert (s == 64).all()
    with pytest.raises(TileError, match="T405"):
        kernel(None, s, None)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("value", [float("inf"), -float("inf"), float("nan")])
def test_a_number_may_be_infinite(dtype: str, value: float) -> None:
    kind = getattr(T, dtype)

    @T.prim_func
    def main(value: kind, B: T.Tensor((8,), "float32")):
        with T.Kernel(1, is_npu=True) as (_, _):
            b = T.alloc_ub((8,), "float32")
            T.tile.fill(b, value)
            T.copy(b, B)

    kernel = tilelang.compile(main, out_idx=[-1], target="ascendc", pass_configs=SYNC)
    np.testing.assert_array_equal(kernel(value), np.full(8, value, np.float32))
    with pytest.raises(TileError, match=rf"value must be a number of type {dtype}; got 1e\+40") as caught:
        kernel(1e40)  # no type here has it
    assert caught.value.code == "T405"
    assert "float('inf') for infinity" in caught.value.help


@pytest.mark.alone
def test_a_call_lets_go_of_the_launch_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The results of two calls of one kernel are never in memory at once, if the caller has freed the first."""
    kernel, a = doubled(40, 64), np.ones((40, 64), np.float32)
    kernel(a)
    launch, bind = weakref.ref(kernel.last_launch), type(kernel.signature).bind
    seen = []

    def watched(*args: Any, **named: Any) -> Any:
        seen.append(launch() is None)
        return bind(*args, **named)

    monkeypatch.setattr(type(kernel.signature), "bind", watched)
    kernel(a)
    assert seen == [True]  # when it allocates
    with pytest.raises(TileError):
        kernel(a.astype(np.int32))
    assert kernel.last_launch is None, "the call asked for last came to no end"
