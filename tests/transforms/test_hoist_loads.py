"""Loads that are hoisted out of their loops: the same values with fewer loads; and loads that cannot be hoisted."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T


def both(func: Any, *arrays: Any, bits: bool = True) -> tuple[str, list[Any]]:
    """Returns the remarks on the loads, and the arrays after the kernel; the same without the optimisation."""
    left = []
    for off in (["hoist-loads"], []):
        kernel = tilelang.compile(func, target="npuir", sanitize=True, pass_configs={"tl.disable": off})
        given = [array.copy() if isinstance(array, np.ndarray) else array for array in arrays]
        kernel(*given)
        left.append(given)
    for one, other in zip(*left, strict=True):
        np.testing.assert_array_equal(one, other)
    lines = kernel.explain().sections["optimisations"]
    start = next(place for place, line in enumerate(lines) if line.startswith("hoist-loads"))
    end = next((place for place in range(start + 1, len(lines)) if not lines[place].startswith(" ")), len(lines))
    reported = [line.removeprefix("hoist-loads").strip() for line in lines[start:end]]
    kept = [one.text.partition(": ")[2] for one in kernel.explain().refused if one.about == "hoist-loads"]
    return "\n".join(kept if reported == [f"{len(kept)} refused, see 'refused' below"] else reported), left[1]


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize(("rows", "columns"), [(1, 8), (5, 33), (9, 64)])
def test_out_of_two_loops(rows: int, columns: int, dtype: str) -> None:
    @T.prim_func
    def main(X: T.Tensor((rows, 6, columns), dtype), W: T.Tensor((1, columns), dtype), V: T.Tensor((rows, columns), dtype),
             Y: T.Tensor((rows, 6, columns), dtype)):
        with T.Kernel(1, is_npu=True) as (cid, _):
            x = T.alloc_shared((6, columns), dtype)
            w = T.alloc_shared((1, columns), dtype)
            v = T.alloc_shared((1, columns), dtype)
            for i in T.serial(rows):
                T.copy(X[i, 0, 0], x)
                for _ in T.serial(2):
                    T.copy(W, w)
                    T.copy(V[i, 0], v)
                    T.vmul(x, w, x)
                    T.vadd(x, v, x)
                T.copy(x, Y[i, 0, 0])

    rng = np.random.default_rng(0)
    x, w, v = (rng.integers(0, 4, shape).astype(dtype) for shape in ((rows, 6, columns), (1, columns), (rows, columns)))
    reported, (_, _, _, y) = both(main, x, w, v, np.zeros_like(x))
    assert reported.count("w is loaded once") == 1 + (rows > 1) and reported.count("v is loaded once") == 1  # loops
    np.testing.assert_array_equal(y, (x * w + v[:, None]) * w + v[:, None])


@pytest.mark.parametrize("trips", [0, 1, 3])
def test_a_loop_that_may_not_run(trips: int) -> None:
    """A tile that is used after the loop keeps its contents from before the loop."""
    @T.prim_func
    def main(X: T.Tensor((8, 16), "float32"), W: T.Tensor((8, 16), "float32"), Y: T.Tensor((8, 16), "float32"), n: T.int32):
        with T.Kernel(1, is_npu=True) as (cid, _):
            x = T.alloc_shared((8, 16), "float32")
            own = T.alloc_shared((8, 16), "float32")
            w = T.alloc_shared((8, 16), "float32")
            T.copy(X, x)
            T.copy(X, w)
            for _ in T.serial(n):
                T.copy(W, w)
                T.copy(W, own)
                T.vadd(x, w, x)
                T.vadd(x, own, x)
            T.vadd(x, w, x)
            T.copy(x, Y)

    rng = np.random.default_rng(0)
    x, w = (rng.integers(0, 9, (8, 16)).astype(np.float32) for _ in range(2))
    reported, left = both(main, x, w, np.zeros_like(x), trips)
    assert reported.count("loaded once") == 1 and "own is loaded once" in reported
    np.testing.assert_array_equal(left[2], x + 2 * trips * w + (w if trips else x))


@pytest.mark.parametrize("count", [0, 3])
def test_a_row_that_is_there_only_where_the_loop_runs(count: int) -> None:
    """The row before the first is none: a loop that does not run must not ask for it."""
    @T.prim_func
    def main(X: T.Tensor((8, 16), "float32"), Y: T.Tensor((1, 16), "float32"), n: T.int32):
        with T.Kernel(1, is_npu=True) as (cid, _):
            total = T.alloc_shared((1, 16), "float32")
            last = T.alloc_shared((1, 16), "float32")
            T.clear(total)
            for _ in T.serial(n):
                T.copy(X[n - 1, 0], last)
                T.vadd(total, last, total)
            T.copy(total, Y)

    x = np.random.default_rng(0).integers(0, 9, (8, 16)).astype(np.float32)
    reported, left = both(main, x, np.ones((1, 16), np.float32), count)
    assert reported == ("the loop possibly has no iteration, and the loaded tile is possibly outside of the tensor, or the "
                    "tensor is a workspace")
    np.testing.assert_array_equal(left[1][0], count * x[count - 1])


def test_what_has_to_stay() -> None:
    """Read before it is loaded; written by another op; from a tensor that the loop writes; under a condition; at an address
    that changes."""
    @T.prim_func
    def main(X: T.Tensor((4, 8, 16), "float32"), Y: T.Tensor((8, 16), "float32"), Z: T.Tensor((8, 16), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, _):
            early = T.alloc_shared((8, 16), "float32")
            other = T.alloc_shared((8, 16), "float32")
            back = T.alloc_shared((8, 16), "float32")
            rare = T.alloc_shared((8, 16), "float32")
            moving = T.alloc_shared((8, 16), "float32")
            total = T.alloc_shared((8, 16), "float32")
            T.clear(total)
            T.clear(early)
            T.clear(rare)
            for i in T.serial(4):
                T.vadd(total, early, total)
                T.copy(X[0, 0, 0], early)
                T.copy(X[1, 0, 0], other)
                T.vadd(other, other, other)
                T.copy(Y, back)
                T.vadd(total, back, total)
                T.vadd(total, other, total)
                T.copy(total, Y)
                if i > 1:
                    T.copy(X[2, 0, 0], rare)
                T.copy(X[i, 0, 0], moving)
                T.vadd(total, rare, total)
                T.vadd(total, moving, total)
            T.copy(total, Z)

    x = np.random.default_rng(0).integers(0, 9, (4, 8, 16)).astype(np.float32)
    reported, left = both(main, x, np.ones((8, 16), np.float32), np.zeros((8, 16), np.float32))
    assert [re.sub(r"\d+", "N", line) for line in reported.splitlines()] == [
        "line N reads early before the load", "line N writes other", "line N writes to Y, from which back is loaded"]
    y, total, early, rare = np.ones((8, 16)), np.zeros((8, 16)), np.zeros((8, 16)), np.zeros((8, 16))
    for i in range(4):
        total = total + early + y + 2 * x[1]
        early, y = x[0], total
        rare = x[2] if i > 1 else rare
        total = total + rare + x[i]
    np.testing.assert_array_equal(left[1], y)
    np.testing.assert_array_equal(left[2], total)


def test_an_operand_of_a_gemm() -> None:
    """Both cores overlap over the iterations of the loop, as if the author loaded the operand before the loop."""
    def attention(inside: bool) -> Any:
        @T.prim_func
        def main(Q: T.Tensor((64, 64), "float16"), K: T.Tensor((448, 64), "float16"), O: T.Tensor((64, 64), "float32")):
            with T.Kernel(1, is_npu=True) as (cid, _):
                q = T.alloc_shared((64, 64), "float16")
                k = T.alloc_shared((64, 64), "float16")
                p = T.alloc_shared((64, 64), "float16")
                scores = T.alloc_fragment((64, 64), "float32")
                product = T.alloc_fragment((64, 64), "float32")
                result = T.alloc_shared((64, 64), "float32")
                if not inside:
                    T.copy(Q, q)
                T.clear(result)
                for i in T.Pipelined(7, num_stages=2):
                    if inside:
                        T.copy(Q, q)
                    T.copy(K[i * 64, 0], k)
                    T.gemm(q, k, scores, initC=True, b_transpose=True)
                    T.vcast(scores, p, "rint")
                    T.gemm(p, k, product, initC=True)
                    T.vadd(result, product, result)
                T.copy(result, O)
        return main

    rng = np.random.default_rng(0)
    q, k = (rng.standard_normal(shape).astype(np.float16) for shape in ((64, 64), (448, 64)))
    reported, _ = both(attention(True), q, k, np.zeros((64, 64), np.float32))
    assert "q is loaded once, before the loop" in reported
    cycles = []
    for inside in (True, False):
        kernel = tilelang.compile(attention(inside), target="npuir")
        kernel(q, k, np.zeros((64, 64), np.float32))
        cycles.append(kernel.last_launch.cycles)
    assert cycles[0] <= 1.01 * cycles[1]


def test_where_room_is_scarce_it_stays() -> None:
    """UB has room for two of three tiles: a tile that is loaded before the loop would leave too little room for the others."""
    @T.prim_func
    def main(X: T.Tensor((5, 96, 256), "float32"), W: T.Tensor((96, 256), "float32"), Y: T.Tensor((5, 96, 256), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, _):
            x = T.alloc_shared((96, 256), "float32")
            w = T.alloc_shared((96, 256), "float32")
            y = T.alloc_shared((96, 256), "float32")
            for i in T.serial(5):
                T.copy(W, w)
                T.vexp(w, w)
                T.copy(w, Y[i, 0, 0])
            for i in T.serial(5):
                T.copy(X[0, 0, 0], x)
                T.vadd(x, x, y)
                T.copy(y, Y[i, 0, 0])

    rng = np.random.default_rng(0)
    x, w = rng.random((5, 96, 256), np.float32), rng.random((96, 256), np.float32)
    reported, left = both(main, x, w, np.zeros_like(x))
    assert reported.splitlines()[-1] == "all buffers in UB together take 294 912 bytes, and UB has 196 608"
    np.testing.assert_array_equal(left[2], np.broadcast_to(x[0] + x[0], x.shape))
