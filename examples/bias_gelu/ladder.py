"""Bias and GeLU after a linear layer."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.append(str(Path(__file__).resolve().parent.parent))

from ladders import Ladder, Work

ABOUT = """\
`y = gelu(x + bias)` with one bias for each column and the tanh approximation of GeLU, `gelu(z) = z / 2 * (1 + tanh(sqrt(2 /
pi) * (z + 0.044715 * z ** 3)))`, computed in float32. It is the computation between the two linear layers of a BERT or GPT
block.

There are a dozen operations for each element. A library would execute each of them as a separate kernel. A *fused* kernel
does not save operations; it saves the traffic of intermediate tensors through global memory."""


def inputs(rows: int, columns: int, dtype: str) -> tuple[NDArray[Any], ...]:
    rng = np.random.default_rng(0)
    x = (2 * rng.standard_normal((rows, columns))).astype(dtype)
    return x, rng.standard_normal((1, columns)).astype(dtype), np.zeros_like(x)


def expected(x: NDArray[Any], bias: NDArray[Any], _y: NDArray[Any], **_: Any) -> NDArray[Any]:
    z = x.astype(np.float64) + bias.astype(np.float64)
    return z / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (z + 0.044715 * z**3)))


def work(rows: int, columns: int, dtype: str) -> Work:
    nbytes = rows * columns * np.dtype(dtype).itemsize
    return Work(read=nbytes, written=nbytes)


LADDER = Ladder(
    title="Bias and GeLU",
    about=ABOUT,
    cases=[
        {"rows": 384, "columns": 128, "dtype": "float32"},
        {"rows": 500, "columns": 200, "dtype": "float16"},
    ],
    large=[{"rows": 65536, "columns": 1024, "dtype": dtype} for dtype in ("float32", "float16")],
    inputs=inputs,
    expected=expected,
    work=work,
    shown=1,
    tolerance={"float32": (1e-4, 1e-5)},
)
check = LADDER.check
