"""The sum or the maximum of the elements of a vector."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.append(str(Path(__file__).resolve().parent.parent))

from ladders import Ladder, Work

ABOUT = """\
`op` of all elements of a vector: their sum, in float32, or their maximum. Each element is read once and used once, so an
efficient kernel is bound only by reads from HBM: 2^25 float32 are 134 MB, at 1.456 TB/s 92.2 us.

Terms: a *Vector core* (there are 48) computes only on its *UB* of 192 KB. Its *pipes* run in parallel: MTE2 loads tiles
from global memory (*GM*) to UB, V computes on vectors of 256 bytes, MTE3 stores, and S is the scalar unit, which also
issues the instructions of the others. A kernel is fast if the pipe that bounds it has no gaps."""


def inputs(length: int, dtype: str, op: str) -> tuple[NDArray[Any], ...]:
    x = np.random.default_rng(0).random(length).astype(dtype)
    return x, np.zeros(1, np.float32 if op == "sum" else dtype)


def expected(x: NDArray[Any], _y: NDArray[Any], op: str, **_: Any) -> NDArray[Any]:
    return np.array([x.astype(np.float64).sum() if op == "sum" else x.max()])


def work(length: int, dtype: str, op: str) -> Work:
    return Work(read=length * np.dtype(dtype).itemsize)


LADDER = Ladder(
    title="Reduce",
    about=ABOUT,
    cases=[
        {"length": 4096, "dtype": "float32", "op": "sum"},
        {"length": 10007, "dtype": "float32", "op": "max"},
        {"length": 10007, "dtype": "float16", "op": "sum"},
        {"length": 16384, "dtype": "float16", "op": "max"},
    ],
    large=[{"length": 2**25, "dtype": dtype, "op": op} for dtype in ("float32", "float16") for op in ("sum", "max")],
    inputs=inputs,
    expected=expected,
    work=work,
    shown=2,
)
check = LADDER.check
