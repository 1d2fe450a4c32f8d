"""The dot product of two vectors, added to one element in global memory."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.append(str(Path(__file__).resolve().parent.parent))

from ladders import Counterpart, Ladder, Work

ABOUT = """\
The dot product of two float16 vectors, accumulated in float32 in one element that all cores share. `T.atomic_add` is an
accumulating store: MTE3 sends the operand, and L2 adds it. The hardware guarantees that no addition is lost, but each
addition is a separate request, and a request of 4 bytes costs as much as one of 512. Requests of the 48 cores to the same
line are executed one after the other."""


def inputs(length: int, dtype: str) -> tuple[NDArray[Any], ...]:
    rng = np.random.default_rng(0)
    return rng.random(length).astype(dtype), rng.random(length).astype(dtype), np.ones(1, np.float32)


def expected(x: NDArray[Any], y: NDArray[Any], z: NDArray[Any], **_: Any) -> NDArray[Any]:
    return z + x.astype(np.float64) @ y.astype(np.float64)


def work(length: int, dtype: str) -> Work:
    return Work(read=2 * length * np.dtype(dtype).itemsize)


LADDER = Ladder(
    title="Atomic add",
    about=ABOUT,
    cases=[{"length": 4096, "dtype": "float16"}, {"length": 10007, "dtype": "float16"}],
    large=[{"length": 2**25, "dtype": "float16"}],
    inputs=inputs,
    expected=expected,
    work=work,
    counterparts=[
        Counterpart("one half at a time", "float16", "422.36 ms"),
        Counterpart("packed in twos", "float16", "137.02 ms"),
        Counterpart("one half padded with 0 to a pair", "float16", "137.01 ms"),
    ],
)
check = LADDER.check
