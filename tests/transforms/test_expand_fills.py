"""Fills of tensors and of scalar storage, and scalar storage that operations on tiles use."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T
from samples import SYNC
from tilelang_npu import TileError
from tilelang_npu.transforms.infra.tensor_strips import STRIP

M, N = T.symbolic("M"), T.symbolic("N")
KINDS = ("float32", "float16", "bfloat16", "int8", "uint8", "int16", "uint16", "int32", "int64")


def of_dialect(dialect: str, *, by_hand: bool = False) -> dict[str, Any]:
    return {"target": dialect, "pass_configs": SYNC if dialect == "ascendc" and not by_hand else None}


def tensor_fill(shape: tuple[Any, ...], kind: str, form: str) -> Any:
    @T.prim_func
    def main(A: T.Tensor(shape, kind), V: T.Tensor((1,), "int32")):
        with T.Kernel(2, is_npu=True) as (cid, vid):
            if form == "whole":
                T.fill(A, 3)
            elif form == "clear":
                T.clear(A)
            elif form == "scalar":
                T.vbrc(A[0, 0], A)
            elif form == "element":
                T.fill(A[1, 2], 3)
            elif form == "slice":
                T.fill(A[1:3, 2:5], 3)
            elif form == "run time":
                n = V[0]
                T.fill(A[1:1 + n, 0:n], 3)
            elif form == "by hand":
                with T.Scope("V"):
                    T.fill(A, 3)

    return main


def filled(a: Any, form: str) -> Any:
    made, three = a.copy(), np.array(3).astype(a.dtype)
    if form == "element":
        made[1, 2] = three
    elif form == "slice":
        made[1:3, 2:5] = three
    elif form == "run time":
        made[1:3, 0:2] = three
    else:
        made[...] = {"clear": np.zeros_like(three), "scalar": a[0, 0]}.get(form, three)
    return made


@pytest.mark.parametrize("dialect", ["npuir", "ascendc"])
@pytest.mark.parametrize("form", ["whole", "clear", "scalar", "element", "slice", "run time", "by hand"])
@pytest.mark.parametrize(("number", "shape", "real"), [
    (0, (5, 7), (5, 7)), (1, (64, 128), (64, 128)), (2, (3, STRIP + 5), (3, STRIP + 5)), (3, (300, 300), (300, 300)),
    (4, (M, 37), (65, 37)), (5, (M, N), (130, 77)), (6, (M, N), (3, 9001))])
def test_a_tensor_is_filled(number: int, shape: tuple[Any, ...], real: tuple[int, int], form: str, dialect: str) -> None:
    if form == "by hand" and dialect == "npuir":
        return  # the compiler sets its waits
    kind = KINDS[(number + len(form)) % len(KINDS)]
    kernel = tilelang.compile(tensor_fill(shape, kind, form), **of_dialect(dialect, by_hand=form == "by hand"))
    a = (np.arange(np.prod(real)) % 50 + 5).reshape(real).astype(kernel.params[0].dtype.numpy)
    expected = filled(a, form)
    kernel(a, np.array([2], np.int32))
    np.testing.assert_array_equal(a.astype(np.float32), expected.astype(np.float32))
    assert kernel.last_launch.hazards == []
    assert "vbrc" in kernel.mlir()
    assert not any("vbrc" in line and "address_space<gm>" in line for line in kernel.mlir().splitlines())


@pytest.mark.parametrize("kind", KINDS)
def test_three_axes_of_every_type(kind: str) -> None:
    @T.prim_func
    def main(A: T.Tensor((3, 5, 130), kind)):
        with T.Kernel(1, threads=32):
            T.fill(A[1:3, 0:4, 3:100], 7)

    kernel = tilelang.compile(main, target="npu")
    a = np.zeros((3, 5, 130), kernel.params[0].dtype.numpy)
    expected = a.astype(np.float32)
    expected[1:3, 0:4, 3:100] = 7
    kernel(a)
    np.testing.assert_array_equal(a.astype(np.float32), expected)


@pytest.mark.parametrize(("alloc", "place"), [(T.alloc_L0A, "L0A"), (T.alloc_L0B, "L0B")])
def test_no_other_memory_is_filled(alloc: Any, place: str) -> None:
    @T.prim_func
    def main(A: T.Tensor((16, 16), "float16")):
        with T.Kernel(1, is_npu=True) as (cid, _):
            a = alloc((16, 16), "float16")
            T.fill(a, 0)

    with pytest.raises(TileError, match=f"a is in {place}, which no instruction can fill with a number") as caught:
        tilelang.compile(main, target="npuir")
    assert caught.value.code == "T201"
    assert caught.value.location is not None
    assert caught.value.location.source().strip() == "T.fill(a, 0)"


@pytest.mark.parametrize("dialect", ["npuir", "ascendc"])
@pytest.mark.parametrize("kind", ["float32", "float16", "int32", "int8"])
def test_scalar_storage_that_is_only_filled_stays_scalar(dialect: str, kind: str) -> None:
    @T.prim_func
    def main(A: T.Tensor((4, 6), kind), B: T.Tensor((4, 6), kind), n: T.int32):
        with T.Kernel(1, is_npu=True) as (cid, _):
            found = T.alloc_local((4, 6), kind)
            T.fill(found, 3)
            T.fill(found[1:3, 0:n], 5)
            T.clear(found[3, 2:4])
            for i, j in T.grid(4, 6):
                B[i, j] = found[i, j] + A[i, j]

    kernel = tilelang.compile(main, **of_dialect(dialect))
    assert "memref.alloca" in kernel.mlir()
    assert "vbrc" not in kernel.mlir()
    a, b = np.arange(24).reshape(4, 6).astype(kind), np.zeros((4, 6), kind)
    kernel(a, b, 3)
    expected = np.full((4, 6), 3, kind)
    expected[1:3, 0:3] = 5
    expected[3, 2:4] = 0
    np.testing.assert_array_equal(b, expected + a)


def test_a_counter_of_the_cube_core_is_cleared_by_it() -> None:
    @T.prim_func
    def main(A: T.Tensor((64, 64), "float16"), C: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, _), T.Scope("Cube"):
            a = T.alloc_L1((64, 64), "float16")
            c = T.alloc_L0C((64, 64), "float32")
            turn = T.alloc_local((1,), "int32")
            T.clear(turn)
            T.copy(A, a)
            for k in T.serial(4):
                T.gemm(a[:, turn[0] * 16:turn[0] * 16 + 16], a[turn[0] * 16:turn[0] * 16 + 16, :], c, initC=k == 0)
                turn[0] = turn[0] + 1
            T.copy(c, C)

    kernel = tilelang.compile(main, out_idx=[1], target="npuir")
    a = np.random.default_rng(0).integers(-3, 4, (64, 64)).astype(np.float16)
    np.testing.assert_array_equal(kernel(a), a.astype(np.float32) @ a.astype(np.float32))
    assert "AIV" not in kernel.mlir()


REDUCTIONS = {"sum": np.sum, "max": np.max, "min": np.min}


@pytest.mark.parametrize("dialect", ["npuir", "ascendc"])
@pytest.mark.parametrize("kind", ["float16", "float32", "int32"])
@pytest.mark.parametrize("name", sorted(REDUCTIONS))
@pytest.mark.parametrize("sizes", [(8,), (5,), (3, 7), (16, 4)])
def test_reductions_of_scalar_storage(name: str, kind: str, sizes: tuple[int, ...], dialect: str) -> None:
    reduce = getattr(T, f"reduce_{name}")
    rank = len(sizes)

    @T.prim_func
    def main(A: T.Tensor(sizes, kind), B: T.Tensor(sizes[:-1] or (1,), kind), C: T.Tensor((1,), kind)):
        with T.Kernel(1, is_npu=True) as (cid, _):
            source = T.alloc_local(sizes, kind)
            target = T.alloc_local(sizes[:-1] or (1,), kind)
            if rank == 1:
                for i in T.serial(sizes[0]):
                    source[i] = A[i]
            else:
                for i, j in T.grid(*sizes):
                    source[i, j] = A[i, j]
            reduce(source, target, dim=rank - 1)
            for i in T.serial(target.shape[0]):
                B[i] = target[i]
            C[0] = target[0] + (source[0] if rank == 1 else source[0, 0])

    kernel = tilelang.compile(main, **of_dialect(dialect))
    a = np.random.default_rng(len(name)).integers(-8, 9, sizes).astype(kind)
    b, c = np.zeros(sizes[:-1] or (1,), kind), np.zeros(1, kind)
    kernel(a, b, c)
    expected = REDUCTIONS[name](a, axis=-1).astype(kind).reshape(b.shape)
    np.testing.assert_array_equal(b, expected)
    np.testing.assert_array_equal(c, expected.reshape(-1)[0] + a.reshape(-1)[0])
    assert kernel.last_launch.hazards == []


@pytest.mark.parametrize("dialect", ["npuir", "ascendc"])
@pytest.mark.parametrize("kind", ["float32", "float16"])
def test_other_operations_on_scalar_storage(kind: str, dialect: str) -> None:
    @T.prim_func
    def main(A: T.Tensor((8, 16), kind), B: T.Tensor((8, 16), kind), C: T.Tensor((8, 16), kind)):
        with T.Kernel(1, is_npu=True) as (cid, _):
            a = T.alloc_local((8, 16), kind)
            b = T.alloc_local((8, 16), kind)
            T.copy(A, a)
            a[3, 5] = a[3, 5] + 1.0
            for i, j in T.Parallel(8, 16):
                b[i, j] = a[i, j] * 2.0
            b[7, 0] = 0.0
            T.copy(b, B)
            T.fill(a, 4.0)
            T.copy(a, C)

    kernel = tilelang.compile(main, out_idx=[1, 2], **of_dialect(dialect))
    a = np.arange(128).reshape(8, 16).astype(kind)
    b, c = kernel(a)
    expected = a.copy()
    expected[3, 5] += 1
    expected = expected * np.array(2, kind)
    expected[7, 0] = 0
    np.testing.assert_array_equal(b, expected)
    np.testing.assert_array_equal(c, np.full_like(a, 4))
    assert kernel.last_launch.hazards == []
