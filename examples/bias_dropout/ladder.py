"""Bias, dropout, residual and LayerNorm: the end of the attention block and of the feed-forward block of a transformer
layer.
"""

import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.append(str(Path(__file__).resolve().parent.parent))

from ladders import Ladder, Work

EPS, KEEP = 1e-5, 0.9
ABOUT = """\
`z = residual + dropout(x + bias)`, computed after the attention block and after the feed-forward block of a layer; BERT
also computes `y = layer_norm(z)`. Dropout multiplies each element by 0 or by `1 / keep`, as given by a mask with one byte
for each element. (The mask is an input: the backward pass needs it again, and the caller chooses how to draw it.) All
computation is in float32.

Sizes with LayerNorm have `True` in their names. Three tensors are read, one of them of bytes, and one is written."""


def inputs(rows: int, columns: int, dtype: str, norm: bool) -> tuple[NDArray[Any], ...]:
    rng = np.random.default_rng(0)
    x, residual = (rng.standard_normal((rows, columns)).astype(dtype) for _ in range(2))
    bias, weight, shift = (rng.standard_normal((1, columns)).astype(dtype) for _ in range(3))
    mask = (rng.random((rows, columns)) < KEEP).astype(np.int8)
    return x, bias, mask, residual, weight, shift, np.zeros_like(x)


def expected(x: NDArray[Any], bias: NDArray[Any], mask: NDArray[Any], residual: NDArray[Any], weight: NDArray[Any],
             shift: NDArray[Any], _y: NDArray[Any], norm: bool, **_: Any) -> NDArray[Any]:
    x, bias, residual, weight, shift = (array.astype(np.float64) for array in (x, bias, residual, weight, shift))
    z = residual + (x + bias) * mask / KEEP
    if not norm:
        return z
    return (z - z.mean(1, keepdims=True)) / np.sqrt(z.var(1, keepdims=True) + EPS) * weight + shift


def work(rows: int, columns: int, dtype: str, norm: bool) -> Work:
    count, size = rows * columns, np.dtype(dtype).itemsize
    return Work(read=count * (2 * size + 1), written=count * size)


LADDER = Ladder(
    title="Bias, dropout, residual, LayerNorm",
    about=ABOUT,
    cases=[
        {"rows": 384, "columns": 128, "dtype": "float32", "norm": True},
        {"rows": 500, "columns": 200, "dtype": "float16", "norm": True},
        {"rows": 100, "columns": 96, "dtype": "float16", "norm": False},
    ],
    large=[{"rows": 65536, "columns": 1024, "dtype": dtype, "norm": norm}
           for dtype in ("float32", "float16") for norm in (False, True)],
    inputs=inputs,
    expected=expected,
    work=work,
    shown=3,
    tolerance={"float32": (1e-4, 1e-4), "float16": (4e-3, 4e-3)},
)
check = LADDER.check
