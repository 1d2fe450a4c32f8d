"""Reducers: in both forms, of each operation and element type, compiled as interpreted and as NumPy has it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T

FOLDS: dict[str, Any] = {"sum": np.add, "max": np.maximum, "min": np.minimum, "bitand": np.bitwise_and, "bitor": np.bitwise_or,
                         "bitxor": np.bitwise_xor}


def run(main: Any, *arrays: Any, exact: bool = True, hazards: tuple[str, ...] = ()) -> Any:
    """The last argument, compiled; the interpreter must have the same."""
    kernel = tilelang.compile(main, target="npu")
    compiled, interpreted = ([array.copy() for array in arrays] for _ in range(2))
    kernel(*compiled)
    assert tuple(hazard.code for hazard in kernel.last_launch.hazards) == hazards
    kernel.interpret(*interpreted)
    if exact:
        np.testing.assert_array_equal(compiled[-1], interpreted[-1])
    else:
        np.testing.assert_allclose(compiled[-1].astype(np.float32), interpreted[-1].astype(np.float32), rtol=1e-2)
    return compiled[-1]


@pytest.mark.parametrize(("op", "dtype"), [
    ("sum", "float32"), ("sum", "float16"), ("sum", "int32"), ("max", "float32"), ("max", "float16"), ("max", "int32"),
    ("max", "bfloat16"), ("min", "float32"), ("min", "int32"), ("min", "float16"), ("bitand", "int32"), ("bitor", "int32"),
    ("bitxor", "int32"), ("sum", "int64"), ("bitand", "uint16"), ("max", "uint32")])
@pytest.mark.parametrize(("m", "n"), [(8, 16), (5, 7)])
def test_started_updated_and_finalized(op: str, dtype: str, m: int, n: int) -> None:
    @T.prim_func
    def main(A: T.Tensor((m, n), dtype), B: T.Tensor((m,), dtype)):
        with T.Kernel(1, threads=128):
            source = T.alloc_fragment((m, n), dtype)
            T.copy(A, source)
            acc = T.alloc_reducer((m,), dtype, op=op)
            T.reducer_init(acc)
            for i, j in T.Parallel(m, n):
                T.reducer_update(acc[i], source[i, j])
            result = T.alloc_fragment((m,), dtype)
            T.finalize_reducer(acc, result)
            T.copy(result, B)

    kind = tilelang.compile(main, target="npu").params[0].dtype.numpy
    a = ((np.arange(m * n) * 7) % 31 - (0 if dtype[0] == "u" else 15)).reshape(m, n).astype(kind)
    expected = FOLDS[op].reduce(a.astype(np.float32) if dtype == "bfloat16" else a, axis=1).astype(kind)
    np.testing.assert_array_equal(run(main, a, np.zeros(m, kind)), expected)


@pytest.mark.parametrize(("op", "replication"), [("sum", "all"), ("max", "none"), ("min", None)])
@pytest.mark.parametrize(("m", "n", "step"), [(8, 64, 16), (3, 33, 16)])
def test_used_like_a_fragment_over_several_tiles(op: str, replication: str | None, m: int, n: int, step: int) -> None:
    @T.prim_func
    def main(A: T.Tensor((m, n), "float32"), B: T.Tensor((m,), "float32")):
        with T.Kernel(1, threads=128):
            acc = T.alloc_reducer(m, "float32", op, replication=replication)
            T.clear(acc)
            for k in T.Pipelined(T.ceildiv(n, step), num_stages=2):
                tile = T.alloc_shared((m, step), "float32")
                T.copy(A[0, k * step], tile)
                for i, j in T.Parallel(m, step):
                    if op == "sum":
                        acc[i] += tile[i, j]
                    elif op == "max":
                        acc[i] = T.max(acc[i], tile[i, j])
                    else:
                        acc[i] = T.min(acc[i], tile[i, j])
            T.finalize_reducer(acc, batch=1)
            T.copy(acc, B)

    a = np.random.default_rng(1).integers(-9, 9, (m, n)).astype(np.float32)
    whole = {"sum": a.sum(1), "max": np.maximum(a.max(1), 0), "min": np.minimum(a.min(1), 0)}[op]
    padded = ("S224",) if op == "min" and n % step else ()  # the last tile's zeros take part; the smallest is 0 anyway
    np.testing.assert_array_equal(run(main, a, np.zeros(m, np.float32), hazards=padded), whole)


def test_a_start_counts_once() -> None:
    @T.prim_func
    def main(A: T.Tensor((8,), "float32"), B: T.Tensor((1,), "float32")):
        with T.Kernel(1, threads=128):
            source = T.alloc_fragment((8,), "float32")
            result = T.alloc_fragment((1,), "float32")
            T.copy(A, source)
            acc = T.alloc_reducer((1,), "float32")
            T.reducer_init(acc, 100.0)
            for i in T.Parallel(8):
                T.reducer_update(acc[0], source[i])
            T.finalize_reducer(acc, result)
            T.copy(result, B)

    assert run(main, np.arange(1, 9, dtype=np.float32), np.zeros(1, np.float32)) == [136]


def test_started_again_in_each_iteration_from_a_running_value() -> None:
    """A logarithm of a sum of exponentials, tile by tile."""
    @T.prim_func
    def main(A: T.Tensor((64,), "float32"), B: T.Tensor((1,), "float32")):
        with T.Kernel(1, threads=128):
            tile = T.alloc_shared((16,), "float32")
            largest = T.alloc_fragment((1,), "float32")
            total = T.alloc_fragment((1,), "float32")
            T.fill(largest, -T.infinity("float32"))
            T.clear(total)
            for k in T.Pipelined(4, num_stages=2):
                T.copy(A[k * 16], tile)
                new = T.alloc_reducer((1,), "float32", op="max", replication="all")
                T.fill(new, largest[0])
                for i in T.Parallel(16):
                    new[0] = T.max(new[0], tile[i])
                T.finalize_reducer(new)
                part = T.alloc_reducer((1,), "float32", replication="all")
                T.fill(part, 0.0)
                for i in T.Parallel(16):
                    part[0] += T.exp(tile[i] - new[0])
                T.finalize_reducer(part)
                total[0] = T.exp(largest[0] - new[0]) * total[0] + part[0]
                largest[0] = new[0]
            B[0] = T.log(total[0]) + largest[0]

    a = np.random.default_rng(3).standard_normal(64).astype(np.float32)
    found = run(main, a, np.zeros(1, np.float32), exact=False)
    np.testing.assert_allclose(found, np.log(np.exp(a.astype(np.float64)).sum()), rtol=1e-5)


PREPARED = "acc = T.alloc_reducer((8, 128), 'float32')\n"


@pytest.mark.parametrize(("statement", "code", "message"), [
    ("T.alloc_reducer((8,), 'float32', op='prod')", "T145", "there is no operation 'prod'"),
    ("T.alloc_reducer((8,), 'float32', replication='some')", "T145", "replication is 'some'"),
    ("T.alloc_reducer((8,), 'float32', op='bitor')", "T110", "bitor of float32 does not exist"),
    ("T.reducer_init(a)", "T110", "a .* is not a reducer"),
    ("T.reducer_update(a[0, 0], 1.0)", "T110", "is not an element of a reducer"),
    ("T.finalize_reducer(a)", "T110", "a .* is not a reducer"),
    (PREPARED + "T.finalize_reducer(acc, batch=0)", "T145", "batch is 0"),
    (PREPARED + "T.finalize_reducer(acc, h)", "T110", "h .* does not have the element type of acc"),
    (PREPARED + "T.finalize_reducer(acc, col)", "T131", "col .* does not have the shape of acc"),
    (PREPARED + "T.reducer_init(acc)\nT.finalize_reducer(acc)", "T145", "whose result needs a destination"),
])
def test_mistakes(kernel: Any, refused: Any, statement: str, code: str, message: str) -> None:
    with refused(code, at=statement.splitlines()[-1], message=message):
        kernel(statement, "npuir")
