"""One core repeats one or a few instructions: dependent instructions of the Vector or Cube unit, or scalar code.

The sources have no barriers between the Vector instructions. All instructions write the same bytes, so that each waits for the
previous one: the source's automatic synchronisation adds the barriers, and these kernels have them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tilelang_npu as tilelang
import tilelang_npu.language as T
from calibration.case import Case


def binary(operation: Callable[..., None], count: int, *, chip: str) -> Any:
    """``z = operation(x, y)`` of 256 float16 elements, ``count`` times."""

    @T.prim_func
    def repeat(X: T.Tensor((256,), "float16"), Y: T.Tensor((256,), "float16"), Z: T.Tensor((256,), "float16")):
        with T.Kernel(1, is_npu=True) as (_core, _):
            x = T.alloc_ub((256,), "float16")
            y = T.alloc_ub((256,), "float16")
            z = T.alloc_ub((256,), "float16")
            with T.Scope("V"):
                T.copy(X, x)
                T.copy(Y, y)
                T.set_flag("mte2", "v", 0)
                T.wait_flag("mte2", "v", 0)
                for _i in T.serial(count):
                    operation(z, x, y)
                    T.pipe_barrier("v")
                T.set_flag("v", "mte3", 0)
                T.wait_flag("v", "mte3", 0)
                T.copy(z, Z)

    return tilelang.compile(repeat, target="ascendc", chip=chip)


def transcendental(count: int, *, chip: str) -> Any:
    """Exponential, logarithm, root and inverse root of 256 float16 elements, each of the previous result, ``count`` times."""

    @T.prim_func
    def repeat(X: T.Tensor((256,), "float16"), Z: T.Tensor((256,), "float16")):
        with T.Kernel(1, is_npu=True) as (_core, _):
            x = T.alloc_ub((256,), "float16")
            z = T.alloc_ub((256,), "float16")
            with T.Scope("V"):
                T.copy(X, x)
                T.set_flag("mte2", "v", 0)
                T.wait_flag("mte2", "v", 0)
                for _i in T.serial(count):
                    T.tile.exp(z, x)
                    T.pipe_barrier("v")
                    T.tile.ln(z, z)
                    T.pipe_barrier("v")
                    T.tile.sqrt(z, z)
                    T.pipe_barrier("v")
                    T.tile.rsqrt(z, z)
                    T.pipe_barrier("v")
                T.set_flag("v", "mte3", 0)
                T.wait_flag("v", "mte3", 0)
                T.copy(z, Z)

    return tilelang.compile(repeat, target="ascendc", chip=chip)


def scalar_chain(count: int, *, chip: str) -> Any:
    """``a = a * c + d`` of one float32 number in a register; each step depends on the previous one."""

    @T.prim_func
    def chain(X: T.Tensor((8,), "float32"), Z: T.Tensor((8,), "float32")):
        with T.Kernel(1, is_npu=True) as (_core, _):
            z = T.alloc_ub((8,), "float32")
            a = T.alloc_var("float32", init=1.0)
            with T.Scope("V"):
                T.copy(X, z)
                T.set_flag("mte2", "s", 0)
                T.wait_flag("mte2", "s", 0)
                a = z[0]
                for _i in T.serial(count):
                    a = a * 1.0000001 + 0.0000001
                for i in range(8):
                    z[i] = a
                T.set_flag("s", "mte3", 0)
                T.wait_flag("s", "mte3", 0)
                T.copy(z, Z)

    return tilelang.compile(chain, target="ascendc", chip=chip)


def scalar_updates(rounds: int, loads: int, *, chip: str) -> Any:
    """Updates of a vector in UB by eight columns of a matrix in UB, four rows a round: 32 subtractions of products.

    Args:
        loads: the number of elements of the matrix that a round reads; if it is less than 32, columns share them.
    """
    shared = 32 // loads if loads >= 8 else 8
    columns = 8 // shared
    taken = loads // columns  # rows whose elements a round reads

    @T.prim_func
    def update(X: T.Tensor((4 * rounds,), "float32"), A: T.Tensor((8, 4 * rounds), "float32"), H: T.Tensor((8,), "float32")):
        with T.Kernel(1, is_npu=True) as (_core, _):
            x = T.alloc_ub((4 * rounds,), "float32")
            a = T.alloc_ub((8, 4 * rounds), "float32")
            h = T.alloc_ub((8,), "float32")
            with T.Scope("V"):
                T.copy(X, x)
                T.copy(A, a)
                T.copy(H, h)
                T.set_flag("mte2", "s", 0)
                T.wait_flag("mte2", "s", 0)
                h0, h1, h2, h3 = h[0], h[1], h[2], h[3]
                h4, h5, h6, h7 = h[4], h[5], h[6], h[7]
                for i in T.serial(rounds):
                    for r in T.unroll(4):
                        row = 4 * i + r % taken
                        a0 = a[0, row]
                        a1 = a[1, row] if columns > 1 else a0
                        a2 = a[2, row] if columns > 2 else a0
                        a3 = a[3, row] if columns > 2 else a1
                        a4 = a[4, row] if columns > 4 else a0
                        a5 = a[5, row] if columns > 4 else a1
                        a6 = a[6, row] if columns > 4 else a2
                        a7 = a[7, row] if columns > 4 else a3
                        x[4 * i + r] = (x[4 * i + r] - h0 * a0 - h1 * a1 - h2 * a2 - h3 * a3 - h4 * a4 - h5 * a5 - h6 * a6
                                        - h7 * a7)
                T.set_flag("s", "mte3", 0)
                T.wait_flag("s", "mte3", 0)
                T.copy(x, X)

    return tilelang.compile(update, target="ascendc", chip=chip)


def small_mmads(count: int, *, chip: str) -> Any:
    """``count`` multiplications of 16 x 16 x 16 in float32 with the same destination, and a barrier of their pipe after
    each."""

    @T.prim_func
    def multiply(A: T.Tensor((16, 16), "float32"), B: T.Tensor((16, 16), "float32"), C: T.Tensor((16, 16), "float32")):
        with T.Kernel(1, is_npu=True) as (_core, _):
            a = T.alloc_L1((16, 16), "float32")
            b = T.alloc_L1((16, 16), "float32")
            left = T.alloc_L0A((16, 16), "float32")
            right = T.alloc_L0B((16, 16), "float32")
            c = T.alloc_L0C((16, 16), "float32")
            with T.Scope("C"):
                T.copy(A, a)
                T.copy(B, b)
                T.barrier_all()
                T.copy(a, left)
                T.copy(b, right)
                T.barrier_all()
                for _i in T.serial(count):
                    T.mma(left, right, c, init=True)
                    T.pipe_barrier("m")
                T.barrier_all()
                T.copy(c, C)

    return tilelang.compile(multiply, target="ascendc", chip=chip)


B3 = "910B3"
CASES = {
    **{f"scalar_updates_{loads}": Case(lambda count, loads=loads: scalar_updates(count, loads, chip="910B4"), (64, 192), 16126)
       for loads in (32, 16, 8, 4)},
    "small_mmads": Case(lambda count: small_mmads(count, chip="910_9382"), (100, 300), 65536),
    **{f"repeat_{name}": Case(lambda count, operation=operation: binary(operation, count, chip=B3), (100, 300), 10_000)
       for name, operation in (("add", T.tile.add), ("mul", T.tile.mul), ("max", T.tile.max), ("min", T.tile.min))},
    "repeat_functions": Case(lambda count: transcendental(count, chip=B3), (100, 300), 10_000),
    "scalar_chain": Case(lambda count: scalar_chain(count, chip=B3), (100, 300), 1_000_000),
}
