"""A step of Adam."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.append(str(Path(__file__).resolve().parent.parent))

from ladders import Ladder, Work

ABOUT = """\
One step of the Adam optimiser on a tensor of parameters `p` with gradients `g`: `m = b1 * m + (1 - b1) * g`, `v = b2 * v +
(1 - b2) * g * g`, `p = p - lr * (m / c1) / (sqrt(v / c2) + eps)`, where `c1` and `c2` depend only on the step number. Four
tensors are read, and three are written in place. All are float32 except the gradients, which may be float16. A fused kernel
moves 28 bytes for each parameter; a library with one operation for each line of the formula moves more than twice as many."""

B1, B2, EPS, RATE, STEP = 0.9, 0.999, 1e-8, 1e-3, 10
C1, C2 = 1 - B1**STEP, 1 - B2**STEP


def inputs(length: int, dtype: str) -> tuple[NDArray[Any], ...]:
    rng = np.random.default_rng(0)
    g = rng.standard_normal(length).astype(dtype)
    p, m = (rng.standard_normal(length).astype(np.float32) for _ in range(2))
    return g, p, m, rng.random(length).astype(np.float32)


def expected(g: NDArray[Any], p: NDArray[Any], m: NDArray[Any], v: NDArray[Any], **_: Any) -> tuple[NDArray[Any], ...]:
    g, p, m, v = (array.astype(np.float64) for array in (g, p, m, v))
    m, v = B1 * m + (1 - B1) * g, B2 * v + (1 - B2) * g * g
    return p - RATE * (m / C1) / (np.sqrt(v / C2) + EPS), m, v


def work(length: int, dtype: str) -> Work:
    return Work(read=length * (12 + np.dtype(dtype).itemsize), written=12 * length)


LADDER = Ladder(
    title="Adam",
    about=ABOUT,
    cases=[
        {"length": 10007, "dtype": "float32"},
        {"length": 48 * 1024, "dtype": "float16"},
    ],
    large=[{"length": 2**25, "dtype": dtype} for dtype in ("float32", "float16")],
    inputs=inputs,
    expected=expected,
    work=work,
    results=3,
    tolerance={"float32": (1e-5, 1e-6)},
)
check = LADDER.check
