"""Products of matrices."""

import sys
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

sys.path.append(str(Path(__file__).resolve().parent.parent))

from ladders import Ladder, Work

ABOUT = """\
`C = A @ B` in float16, bfloat16 (both summed in float32) and int8 (in int32). A *Cube core* (there are 24) multiplies a
tile of L0A by a tile of L0B and adds to L0C: 16 x 16 x 16 pairs of float16 in a cycle, twice as many of int8. Its pipes:
MTE2 brings tiles from GM to L1 and puts them in fractals of 16 x 16 on the way, MTE1 takes them from there to L0A and L0B,
M multiplies, FIX stores what L0C holds, and converts it. None of these kernels says a word of L0, of fractals or of flags.

M is what a good kernel is bound by. Of a product of 4096 x 4096 x 4096 each element that is loaded takes part in 4096
multiplications; in a tile of C with m rows and n columns that core uses each element of A n times, and each of B m times.
What it takes to bring them there once more for each tile is the story of this ladder."""

REST = """\
int8 stays below 80 %. M is at work for {2: AIC M} of the time, MTE2 for {2: AIC MTE2}: a row of a tile of B has 256 elements,
which are 256 bytes, half a line, and what rows take to begin is {2: AIC MTE2 short rows}. A weight that is kept as columns by
rows would have its lines along K, as in [int8 with scales](w8a8.md), where L2 is what MTE2 waits for then. The tile cannot be
wider, since L0C holds int32."""

TYPES = {"float16": "f16", "bfloat16": "bf16", "int8": "i8"}


def inputs(M: int, N: int, K: int, dtype: str) -> tuple[NDArray[Any], ...]:
    rng = np.random.default_rng(0)
    if dtype == "int8":
        a, b = (rng.integers(-100, 100, shape, np.int8) for shape in ((M, K), (K, N)))
        return a, b, np.zeros((M, N), np.int32)
    kind = ml_dtypes.bfloat16 if dtype == "bfloat16" else np.float16
    a, b = (rng.standard_normal(shape).astype(kind) for shape in ((M, K), (K, N)))
    return a, b, np.zeros((M, N), kind)


def expected(a: NDArray[Any], b: NDArray[Any], c: NDArray[Any], **_: Any) -> NDArray[Any]:
    wide = np.int32 if a.dtype == np.int8 else np.float32
    return a.astype(wide) @ b.astype(wide)


def work(M: int, N: int, K: int, dtype: str) -> Work:
    size = 1 if dtype == "int8" else 2
    return Work(read=size * K * (M + N), written=(4 if dtype == "int8" else 2) * M * N, flops={TYPES[dtype]: 2 * M * N * K})


LADDER = Ladder(
    title="Matrix product",
    about=ABOUT,
    cases=[
        {"M": 256, "N": 512, "K": 512, "dtype": "float16"},
        {"M": 250, "N": 300, "K": 200, "dtype": "bfloat16"},
        {"M": 130, "N": 300, "K": 530, "dtype": "int8"},
    ],
    large=[{"M": 4096, "N": 4096, "K": 4096, "dtype": dtype} for dtype in TYPES],
    inputs=inputs,
    expected=expected,
    work=work,
    tolerance={"float16": (2e-3, 4e-2), "bfloat16": (1.6e-2, 2e-1)},
    goal=0.8,
    rate_of="cube",
    rest=REST,
)
check = LADDER.check
