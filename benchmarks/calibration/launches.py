"""Kernels that measure the launch: an empty kernel, copies by a few cores or by all, and programs with a block for every
row."""

from __future__ import annotations

from typing import Any

import tilelang_npu as tilelang
import tilelang_npu.language as T
from calibration.case import Case

EPSILON = 1e-5


def nothing(blocks: int, *, chip: str) -> Any:
    """A kernel of Vector cores that returns at once."""

    @T.prim_func
    def nothing(X: T.Tensor((8,), "float32")):
        with T.Kernel(blocks, is_npu=True) as (core, _):
            x = T.alloc_ub((8,), "float32")
            if core < 0:
                T.copy(X, x)

    return tilelang.compile(nothing, target="ascendc", chip=chip)


def identity(size: int, cores: int, *, chip: str) -> Any:
    """A copy of ``size`` bytes, a range for each core, in pieces of 64 KB through two slots."""
    piece = 65536
    share = -(-size // cores // 32) * 32

    @T.prim_func
    def copy(X: T.Tensor((size,), "uint8"), Y: T.Tensor((size,), "uint8")):
        with T.Kernel(cores, is_npu=True) as (core, _):
            x = T.alloc_ub((2, piece), "uint8")
            with T.Scope("V"):
                for slot in range(2):
                    T.set_flag("mte3", "mte2", slot)
                own = T.min(share, size - core * share)
                for i in T.serial(T.ceildiv(own, piece)):
                    first = core * share + i * piece
                    count = T.min(piece, own - i * piece)
                    T.wait_flag("mte3", "mte2", i % 2)
                    T.copy(X[first : first + count], x[i % 2, 0:count])
                    T.set_flag("mte2", "mte3", i % 2)
                    T.wait_flag("mte2", "mte3", i % 2)
                    T.copy(x[i % 2, 0:count], Y[first : first + count])
                    T.set_flag("mte3", "mte2", i % 2)
                for slot in range(2):
                    T.wait_flag("mte3", "mte2", slot)

    return tilelang.compile(copy, target="ascendc", chip=chip)


def added(count: int, part: int, *, chip: str) -> Any:
    """``z = x + y`` of float32, a block for every ``part`` elements."""

    @T.prim_func
    def add(X: T.Tensor((count,), "float32"), Y: T.Tensor((count,), "float32"), Z: T.Tensor((count,), "float32")):
        with T.Kernel(count // part, is_npu=True) as (block, _):
            x = T.alloc_ub((part,), "float32")
            y = T.alloc_ub((part,), "float32")
            T.copy(X[block * part : (block + 1) * part], x)
            T.copy(Y[block * part : (block + 1) * part], y)
            T.vadd(x, y, x)
            T.copy(x, Z[block * part : (block + 1) * part])

    return tilelang.compile(add, target="npuir", chip=chip)


def softmax(rows: int, length: int, *, chip: str) -> Any:
    """Softmax of float32, a block for every row."""

    @T.prim_func
    def softmax(X: T.Tensor((rows, length), "float32"), Y: T.Tensor((rows, length), "float32")):
        with T.Kernel(rows, is_npu=True) as (row, _):
            x = T.alloc_ub((1, length), "float32")
            one = T.alloc_ub((1, 1), "float32")
            T.copy(X[row, 0], x)
            T.reduce(x, one, dims=[1], reduce_mode="max")
            T.vsub(x, one, x)
            T.vexp(x, x)
            T.reduce(x, one, dims=[1], reduce_mode="sum")
            T.vdiv(x, one, x)
            T.copy(x, Y[row, 0])

    return tilelang.compile(softmax, target="npuir", chip=chip)


def normalised(rows: int, length: int, *, centred: bool, chip: str) -> Any:
    """Root mean square or, if ``centred``, layer normalisation of float32, a block for every row."""

    @T.prim_func
    def normalise(X: T.Tensor((rows, length), "float32"), W: T.Tensor((1, length), "float32"),
                  B: T.Tensor((1, length), "float32"), Y: T.Tensor((rows, length), "float32")):
        with T.Kernel(rows, is_npu=True) as (row, _):
            x = T.alloc_ub((1, length), "float32")
            w = T.alloc_ub((1, length), "float32")
            squares = T.alloc_ub((1, length), "float32")
            one = T.alloc_ub((1, 1), "float32")
            T.copy(X[row, 0], x)
            if centred:
                T.reduce(x, one, dims=[1], reduce_mode="sum")
                T.vmul(one, 1.0 / length, one)
                T.vsub(x, one, x)
            T.vmul(x, x, squares)
            T.reduce(squares, one, dims=[1], reduce_mode="sum")
            T.vmul(one, 1.0 / length, one)
            T.vadd(one, EPSILON, one)
            T.vsqrt(one, one)
            T.vdiv(1.0, one, one)
            T.copy(W[0, 0], w)
            T.vmul(x, one, x)
            T.vmul(x, w, x)
            if centred:
                b = T.alloc_ub((1, length), "float32")
                T.copy(B[0, 0], b)
                T.vadd(x, b, x)
            T.copy(x, Y[row, 0])

    return tilelang.compile(normalise, target="npuir", chip=chip)


B3, B4 = "910B3", "910B4-1"
CASES = {
    "nothing": Case(lambda _count: nothing(1, chip=B3)),
    **{f"identity_{size >> 10}k_c{cores}": Case(lambda _count, size=size, cores=cores: identity(size, cores, chip=B4))
       for size, cores in ((64 << 10, 1), (160 << 10, 2), (560 << 10, 5), (2 << 20, 16))},
    **{f"programs_add_{count >> 20}m": Case(lambda _count, count=count: added(count, 2048, chip=B3))
       for count in (16 << 20, 32 << 20)},
    "programs_softmax": Case(lambda _count: softmax(8192, 2048, chip=B3)),
    "programs_rms_norm": Case(lambda _count: normalised(8192, 2048, centred=False, chip=B3)),
    "programs_layer_norm": Case(lambda _count: normalised(8192, 2048, centred=True, chip=B3)),
}
