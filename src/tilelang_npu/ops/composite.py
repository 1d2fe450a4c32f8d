"""Elementwise operations without a HIVM op, as expansions into other entries of the op table.

The pass ``expand-composites`` expands them; their temporaries are planned like any other buffer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tilelang_npu.ops.spec import Composite, declare, parse_steps
from tilelang_npu.ops.vector import ARITHMETIC, FLOAT, INTEGER_ARITHMETIC
from tilelang_npu.target.dtypes import DType, dtype


def composite(name: str, inputs: int, expansion: str, meaning: Callable[..., object], cost: str, doc: str, *aliases: str,
              dtypes: tuple[DType, ...] = FLOAT, scalar: tuple[int, ...] = (), **facts: Any) -> Composite:
    """Declares a composite entry and returns it.

    Args:
        name: the canonical name of the entry.
        inputs: the number of inputs.
        expansion: the steps, in the syntax of :func:`~tilelang_npu.ops.spec.parse_steps`.
        meaning: the NumPy function from the inputs to the result. If the operation accumulates, its last argument is the array
            that the destination holds before the operation.
        cost: the row of the chip's rate table.
        doc: one sentence for the documentation.
        aliases: further names under ``T``.
        dtypes: the element types of the inputs.
        scalar: the positions of the inputs that may be scalars.
        facts: further fields of :class:`~tilelang_npu.ops.spec.Composite`.
    """
    return declare(Composite(name=name, aliases=aliases, inputs=inputs, dtypes=dtypes, hivm="", meaning=meaning, cost=cost,
                             doc=doc, expansion=parse_steps(expansion), scalar=frozenset(scalar), **facts))


sigmoid = composite(
    "sigmoid", 1, "dst = sub(0, src0); dst = exp(dst); dst = add(dst, 1); dst = div(1, dst)",
    lambda a: 1 / (1 + np.exp(-a)), "exp", "1 / (1 + exp(-x)).", "tile.sigmoid", "vsigmoid", "npuir_sigmoid")
silu = composite(
    "silu", 1, "t = sub(0, src0); t = exp(t); t = add(t, 1); dst = div(src0, t)",
    lambda a: a / (1 + np.exp(-a)), "exp", "x / (1 + exp(-x)).", "tile.silu")
leaky_relu = composite(
    "leaky_relu", 2, "t = min(src0, 0); t = mul(t, src1); dst = max(src0, 0); dst = add(dst, t)",
    lambda a, s: np.where(a > 0, a, a * s), "relu", "x where x is positive, else x times the slope.", "tile.leaky_relu",
    scalar=(1,))
axpy = composite(
    "axpy", 2, "t = mul(src0, src1); dst = add(dst, t)", lambda a, s, d: d + a * s, "axpy",
    "Adds the input times a scalar to the destination.", "tile.axpy", scalar=(1,), accumulates=True, instruction=True)
mul_add_dst = composite(
    "mul_add_dst", 2, "t = mul(src0, src1); dst = add(dst, t)", lambda a, b, d: d + a * b, "mul",
    "Adds the product of two inputs to the destination.", "tile.mul_add_dst", accumulates=True,
    dtypes=(*FLOAT, dtype("i16"), dtype("i32")))
clamp = composite(
    "clamp", 3, "dst = max(src0, src1); dst = min(dst, src2)", lambda a, low, high: np.minimum(np.maximum(a, low), high), "max",
    "Limits each element to a lower and an upper bound.", "tile.clamp", "vclamp", "npuir_clamp", dtypes=ARITHMETIC,
    scalar=(1, 2), inputs_after=2, counted=True)
clamp_min = composite(
    "clamp_min", 2, "dst = max(src0, src1)", np.maximum, "max", "The larger of each element and a bound.", "tile.clamp_min",
    dtypes=ARITHMETIC, scalar=(1,), counted=True)
clamp_max = composite(
    "clamp_max", 2, "dst = min(src0, src1)", np.minimum, "min", "The smaller of each element and a bound.", "tile.clamp_max",
    dtypes=ARITHMETIC, scalar=(1,), counted=True)
rounded = composite(
    "round", 1, "dst = cast(src0, round_mode=rint)", np.rint, "conv", "The nearest integer, ties to even.", "tile.round",
    dtypes=(dtype("f32"),), counted=True)
floored = composite(
    "floor", 1, "dst = cast(src0, round_mode=floor)", np.floor, "conv", "The largest integer that is not greater.", "vfloor",
    "npuir_floor")
# The division truncates. Where the remainder has the other sign than the divisor, the floor is one less: t becomes the sign of
# the remainder and s that of the divisor, so that min(t * s, 0) is -1 there and 0 elsewhere. Signs instead of the numbers
# themselves keep the product from overflowing, and a divisor of 0 gives the quotient of the division, 0.
floor_division = composite(
    "floordiv", 2,
    "q = div(src0, src1); t = mul(q, src1); t = sub(src0, t); s = mul(t, 0); s = add(s, src1);"
    " t = max(t, -1); t = min(t, 1); s = max(s, -1); s = min(s, 1); t = mul(t, s); t = min(t, 0); dst = add(q, t)",
    np.floor_divide, "div", "The first element divided by the second, rounded down.", "vfloordiv", "npuir_floordiv",
    dtypes=INTEGER_ARITHMETIC, scalar=(1,))
