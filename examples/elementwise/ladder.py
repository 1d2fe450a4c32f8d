"""The product of two tensors, and a chain of operations."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.append(str(Path(__file__).resolve().parent.parent))

from ladders import Counterpart, Ladder, Work

ABOUT = """\
`z = x * y`, and `z = relu(x * y + x)`, a chain of three operations. Two elements are read and one is written for at most
three operations: as in the reduction, HBM is the only bound of an efficient kernel, so the chain should take no longer than
the product.

The size of a tensor need not be a multiple of the tile. The last tile is clipped at the end of the tensor: elements beyond
the end are loaded as zero, and are not stored."""


def inputs(length: int, dtype: str, op: str) -> tuple[NDArray[Any], ...]:
    rng = np.random.default_rng(0)
    return rng.standard_normal(length).astype(dtype), rng.standard_normal(length).astype(dtype), np.zeros(length, dtype)


def expected(x: NDArray[Any], y: NDArray[Any], _z: NDArray[Any], op: str, **_: Any) -> NDArray[Any]:
    product = x.astype(np.float32) * y.astype(np.float32)
    return product if op == "mul" else np.maximum(product + x.astype(np.float32), 0)


def work(length: int, dtype: str, op: str) -> Work:
    nbytes = length * np.dtype(dtype).itemsize
    return Work(read=2 * nbytes, written=nbytes)


LADDER = Ladder(
    title="Elementwise",
    about=ABOUT,
    cases=[
        {"length": 8192, "dtype": "float32", "op": "mul"},
        {"length": 20011, "dtype": "float16", "op": "mul"},
        {"length": 10007, "dtype": "float16", "op": "chain"},
    ],
    large=[{"length": 2**25, "dtype": dtype, "op": op} for dtype in ("float32", "float16") for op in ("mul", "chain")],
    inputs=inputs,
    expected=expected,
    work=work,
    tolerance={"float16": (4e-3, 2e-3)},
    counterparts=[
        Counterpart("multiply, naive", "float32", "298.46 us", "85.88 %"),
        Counterpart("multiply, packed template (a functor of any arity)", "float32", "284 us", "89.42 %"),
        Counterpart("multiply, naive", "float16", "237.28 us", "52.55 %"),
        Counterpart("multiply, packed template", "float16", "140.74 us", "87.31 %"),
    ],
)
check = LADDER.check
