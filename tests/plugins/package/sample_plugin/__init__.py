"""A plug-in for tilelang_npu: three operations, a pass and a chip."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from sample_plugin.meanings import rotated
from tilelang_npu.dialects import tile
from tilelang_npu.plugins import MemoryMove, Structured, VectorRate, register_chip, register_op, register_pass


@register_op(dtypes=("float16", "float32"), cost=VectorRate(slope16=5, slope32=3, fixed=41), symbol="sample_softsign")
def softsign(x: Any) -> Any:
    """The element divided by one plus its absolute value."""
    return x / (1 + np.abs(x))


@register_op(Structured, dtypes=("float16", "float32", "int32"), cost="copy", attributes={"by": int}, by_rows=True)
def rotate(outs: Sequence[Any], ins: Sequence[Any], facts: Mapping[str, Any]) -> None:
    """The elements of each row, rotated to the right."""
    outs[0][...] = rotated(ins[0], facts["by"])


@register_op(MemoryMove, path="gm_ub", dtypes=("float16", "float32"))
def load_reversed(outs: Sequence[Any], ins: Sequence[Any], facts: Mapping[str, Any]) -> None:
    """A tile of a tensor, each row from its last element to its first."""
    outs[0][...] = ins[0][..., ::-1]


@register_pass(after="collapse-copies")
@dataclass(frozen=True)
class DropRepeatedRelu(ModulePass):
    """Removes an in-place relu that directly follows another relu of the same buffer.

    Attributes:
        enabled: whether the pass does anything.
        most: the largest number of operations to remove; 0 for all.
    """

    name = "drop-repeated-relu"
    enabled: bool = True
    most: int = 0

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Runs the pass."""
        dropped = 0
        for second in [inner for inner in op.walk() if isinstance(inner, tile.ElementwiseOp) and inner.fn.data == "relu"]:
            first = second.prev_op
            if (self.enabled and isinstance(first, tile.ElementwiseOp) and first.fn.data == "relu"
                    and second.inputs[0] is second.target is first.target and (not self.most or dropped < self.most)):
                Rewriter.erase_op(second)
                dropped += 1


if sys.version_info >= (3, 11):  # which reads TOML
    register_chip("sample910.toml")
