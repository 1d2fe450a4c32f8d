"""Matrix products."""

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
tile of L0A by a tile of L0B and accumulates in L0C: 16 x 16 x 16 pairs of float16 in a cycle, twice as many of int8. Its
pipes: MTE2 loads tiles from GM to L1 and converts them to fractals of 16 x 16, MTE1 loads L0A and L0B from L1, M
multiplies, and FIX converts and stores the contents of L0C. None of these kernels mentions L0, fractals or flags.

M is the bound of an efficient kernel. In a product of 4096 x 4096 x 4096 each element takes part in 4096 multiplications;
for a tile of C with m rows and n columns, a core uses each loaded element of A n times, and each of B m times. The steps of
this ladder reduce the cost of loading the same elements again for each tile."""

LIMITS = """\
int8 stays below 80 %. M is busy for {2: AIC M} of the time, MTE2 for {2: AIC MTE2}: a row of a tile of B has 256 elements,
which are 256 bytes, half a line, and the start-up costs of rows are {2: AIC MTE2 short rows}. A weight stored transposed,
as columns x rows, would have its lines along K, as in [int8 with scales](w8a8.md), where MTE2 is then bound by L2. The tile
cannot be wider, since L0C holds int32."""

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
    limits=LIMITS,
)
check = LADDER.check
