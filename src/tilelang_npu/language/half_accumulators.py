"""Accumulators of float16 or bfloat16 in kernels for a GPU, whose tensor cores can add in float16.

The Cube core adds in float32. The accumulator becomes a buffer of float32 when a product first writes it: statements before the
product are converted, and later statements find the new element type. Sums are rounded when they leave the accumulator, not
after each product.
"""

from __future__ import annotations

from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import Float32Type, FloatAttr
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from tilelang_npu.dialects import tile
from tilelang_npu.target.dtypes import DType
from tilelang_npu.traced.buffers import Buffer
from tilelang_npu.traced.builder import Builder
from tilelang_npu.traced.ir_types import buffer_type

_WIDENED = ("float16", "bfloat16")
_F32 = Float32Type()


def widen_accumulator(builder: Builder, c: object) -> None:
    """Changes the element type of an accumulator from float16 or bfloat16 to float32, in a kernel for a GPU.

    Nothing is changed if the accumulator is no whole buffer of the kernel, or if an earlier statement uses it in another way
    than by a fill, a copy or a store of an element: an element that was read before has the old type.
    """
    if not (builder.threads and isinstance(c, Buffer) and str(c.dtype) in _WIDENED and c.space in ("fragment", "cc")):
        return
    old = c.value.owner
    uses = [use.operation for use in c.value.uses]
    if not isinstance(old, tile.AllocOp) or not all(
            isinstance(use, tile.FillOp | tile.CopyOp | memref.StoreOp) for use in uses):
        return
    made = tile.AllocOp(old.label.data, buffer_type(DType("float32"), c.dimensions, c.space))
    made.location = old.location
    Rewriter().insert_op(made, InsertPoint.before(old))
    made.result.name_hint = c.value.name_hint
    for use in dict.fromkeys(uses):
        _convert(use, c.value, made.result)
    Rewriter.erase_op(old)
    c.value, c.element = made.result, DType("float32")


def _convert(use: Operation, old: SSAValue, new: SSAValue) -> None:
    """Changes a statement that uses the accumulator ``old`` to use ``new``."""
    if isinstance(use, tile.FillOp | memref.StoreOp):
        value = use.operands[0]
        held = value.owner.value if isinstance(value.owner, arith.ConstantOp) else None
        made = arith.ConstantOp(FloatAttr(held.value.data, _F32)) if isinstance(held, FloatAttr) else arith.ExtFOp(value, _F32)
        made.location = use.location
        Rewriter().insert_op(made, InsertPoint.before(use))
        use.operands[0] = made.results[0]
    for position, operand in enumerate(use.operands):
        if operand is old:
            use.operands[position] = new


__all__ = ["widen_accumulator"]
