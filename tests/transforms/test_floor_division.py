"""``//`` and ``%`` in T.Parallel: vector instructions for constant divisors, against NumPy, and scalar code for others."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T
from tilelang_npu import TileWarning

COUNT, TILE = 1000, 512


@tilelang.jit(out_idx=[-1], target="npuir")
def divided(count, divisor, dtype, what):
    @T.prim_func
    def main(X: T.Tensor((count,), dtype), Y: T.Tensor((count,), dtype)):
        with T.Kernel(T.ceildiv(count, TILE), is_npu=True) as (b, _):
            x = T.alloc_shared((TILE,), dtype)
            y = T.alloc_shared((TILE,), dtype)
            T.copy(X[b * TILE], x)
            for i in T.Parallel(TILE):
                if what == "quotient":
                    y[i] = x[i] // divisor
                elif what == "rest":
                    y[i] = x[i] % divisor
                elif what == "both":
                    y[i] = x[i] // divisor * 2 - x[i] % divisor
                else:
                    y[i] = x[i] // T.max(x[i] % divisor, 1)
            T.copy(y, Y[b * TILE])

    return main


def numbers(dtype: str) -> np.ndarray:
    """Returns numbers of the whole range, its ends, and small numbers of both signs."""
    rng, info = np.random.default_rng(3), np.iinfo(dtype)
    found = rng.integers(info.min, info.max, COUNT, dtype=dtype, endpoint=True)
    found[:5] = info.min, info.max, 0, -1, 1
    found[5:400] = rng.integers(-30, 30, 395)
    return found


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64"])
@pytest.mark.parametrize("divisor", [1, 2, 7, 100, -3, -128])
@pytest.mark.parametrize("what", ["quotient", "rest", "both"])
def test_a_constant_divisor_has_vector_instructions_with_the_values_of_numpy(dtype: str, divisor: int, what: str) -> None:
    x, by = numbers(dtype), np.array(divisor, dtype)
    with np.errstate(over="ignore"):
        expected = {"quotient": lambda: x // by, "rest": lambda: x % by,
                    "both": lambda: x // by * np.array(2, dtype) - x % by}[what]()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kernel = divided(COUNT, divisor, dtype, what)
    np.testing.assert_array_equal(kernel(x), expected.astype(dtype))
    assert "scf.for %i" not in kernel.mlir()


def test_it_takes_a_small_part_of_the_time_of_scalar_code() -> None:
    vector = divided(COUNT, 7, "int32", "quotient").estimate().time_us
    with pytest.warns(TileWarning, match="T192.*only for signed elements and a constant divisor"):
        scalar = divided(COUNT, 7, "int32", "by elements").estimate().time_us
    assert vector < scalar / 2


@pytest.mark.filterwarnings("ignore:T192")
def test_a_divisor_that_is_computed_has_the_values_of_numpy() -> None:
    x = numbers("int32")
    np.testing.assert_array_equal(divided(COUNT, 7, "int32", "by elements")(x), x // np.maximum(x % 7, 1))


@pytest.mark.filterwarnings("ignore:T192")
def test_minus_one_wraps_as_numpy_does() -> None:
    x = numbers("int32")
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(divided(COUNT, -1, "int32", "quotient")(x), x // np.int32(-1))
