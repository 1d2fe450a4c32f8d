"""One matrix product for each expert: rows are sorted by expert, and the number of rows of each expert is known only at run
time.
"""

import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.append(str(Path(__file__).resolve().parent.parent))

from ladders import Ladder, Work

ABOUT = """\
`C[rows of g] = A[rows of g] @ B[g]` in float16, summed in float32: the expert layer of a mixture of experts. A has the rows
of all experts one after the other, expert `g` from `Offsets[g]` to `Offsets[g + 1]`. A router assigns the tokens, so the
sizes of the groups are known only at run time, and they are uneven: of the 4096 rows here, one of the 8 experts has a
quarter, and another has very few.

The Cube cores need at least `2 * rows * N * K` operations, however rows are grouped. Everything beyond this is work on tile
rows that belong to no token."""

LIMITS = """\
The last step is bound by MTE2, which has no gaps: it is busy for {AIC MTE2} of the time, for {AIC MTE2 L2} slowed by L2.
Most experts end within a tile, so there are more rows of tiles than the tokens would fill, and each of them loads all of
its part of B. Moreover, the matrix of an expert is read from HBM for only a few tiles; a single matrix for all tokens would
be in L2 after the first tiles. The launch takes {launch share}."""


def inputs(rows: int, groups: int, N: int, K: int) -> tuple[NDArray[Any], ...]:
    rng = np.random.default_rng(0)
    shares = np.arange(groups) ** 1.0
    offsets = np.floor(rows * np.concatenate([[0], np.cumsum(shares)]) / shares.sum()).astype(np.int32)
    a, b = (rng.standard_normal(shape, np.float32).astype(np.float16) for shape in ((rows, K), (groups, K, N)))
    return a, b, offsets, np.zeros((rows, N), np.float16)


def expected(a: NDArray[Any], b: NDArray[Any], offsets: NDArray[Any], _c: NDArray[Any], **_: Any) -> NDArray[Any]:
    parts = [a[first:last].astype(np.float32) @ of.astype(np.float32)
             for of, first, last in zip(b, offsets[:-1], offsets[1:], strict=True)]
    return np.concatenate(parts)


def work(rows: int, groups: int, N: int, K: int) -> Work:
    return Work(read=2 * K * (rows + groups * N), written=2 * rows * N, flops={"f16": 2 * rows * N * K})


LADDER = Ladder(
    title="Grouped matrix product",
    about=ABOUT,
    cases=[{"rows": 512, "groups": 4, "N": 256, "K": 256}, {"rows": 133, "groups": 3, "N": 300, "K": 200}],
    large=[{"rows": 4096, "groups": 8, "N": 2048, "K": 1024}],
    inputs=inputs,
    expected=expected,
    work=work,
    tolerance={"float16": (2e-3, 4e-2)},
    goal=0.8,
    rate_of="cube",
    limits=LIMITS,
)
check = LADDER.check
