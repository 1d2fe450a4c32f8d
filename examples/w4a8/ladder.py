"""A matrix product with weights of four bits and activations of eight."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.append(str(Path(__file__).resolve().parent.parent))

from ladders import Ladder, Work

PACK = 256
ABOUT = """\
`C = (A @ B.T) * scale_a * scale_b` with int8 activations and 4-bit weights, two in a byte: for each 256 weights of a row,
byte `j` has weight `j` in its low half and weight `128 + j` in its high half, both with an offset of 8. Large models are
stored in this way, in half the memory, for decoding with small batches: A has 64 rows, and most of the time goes into
reading weights.

The Cube cores do not support 4-bit operands. The Vector cores unpack them to bytes, but have no path to L1: the unpacked
weights go to a workspace in GM, and from there to the Cube core. A quarter of the bytes of float16 are read from HBM, but
four times as many pass through L2."""

LIMITS = """\
The last step is far from the time that HBM needs for the packed weights. MTE2 of the Cube core is busy for {AIC MTE2} of
the time, for {AIC MTE2 L2} slowed by L2, and the launch takes {launch share}: each weight that HBM reads as half a byte
passes through L2 twice as a byte, written by a Vector core and read by the Cube core, which converts it to fractals. A chip
with a path from UB to L1 avoids this detour."""


def inputs(M: int, N: int, K: int) -> tuple[NDArray[Any], ...]:
    rng = np.random.default_rng(0)
    a = rng.integers(-128, 128, (M, K), np.int8)
    packed = rng.integers(0, 256, (N, K // 2), np.uint8)
    scale_a, scale_b = (rng.uniform(0.5e-3, 2e-3, shape).astype(np.float32) for shape in ((M, 1), (1, N)))
    return a, packed, scale_a, scale_b, np.zeros((M, N), np.float16)


def expected(a: NDArray[Any], packed: NDArray[Any], scale_a: NDArray[Any], scale_b: NDArray[Any], _c: NDArray[Any],
             **_: Any) -> NDArray[Any]:
    packs = packed.reshape(len(packed), -1, PACK // 2).astype(np.int32)
    b = np.concatenate([(packs & 15) - 8, (packs >> 4) - 8], axis=2).reshape(len(packed), -1)
    return a.astype(np.int32) @ b.T * scale_a * scale_b


def work(M: int, N: int, K: int) -> Work:
    return Work(read=K * (M + N / 2) + 4 * (M + N), written=2 * M * N, flops={"i8": 2 * M * N * K})


LADDER = Ladder(
    title="Matrix product with weights of four bits",
    about=ABOUT,
    cases=[{"M": 64, "N": 512, "K": 512}, {"M": 50, "N": 300, "K": 768}],
    large=[{"M": 64, "N": 12288, "K": 4096}],
    inputs=inputs,
    expected=expected,
    work=work,
    tolerance={"float16": (2e-3, 1e-3)},
    limits=LIMITS,
)
check = LADDER.check
