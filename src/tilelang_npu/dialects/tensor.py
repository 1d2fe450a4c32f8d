"""The ops of tensor whose rules in xDSL are narrower than those of LLVM 19."""

from __future__ import annotations

from typing import Any

from xdsl.dialects import tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX, IndexType, TensorType
from xdsl.dialects.utils.reshape_ops_utils import verify_reshape_like_types
from xdsl.utils.exceptions import VerifyException

from tilelang_npu.dialects.declaration import replacing, widened


def _expandable(op: Any) -> None:
    shape = op.result.type.get_shape()
    stated = op.static_output_shape.get_values()
    if len(stated) != len(shape):
        msg = (f"expected number of static shape dims to be equal to the output rank ({len(shape)})"
               f" but found {len(stated)} inputs instead")
        raise VerifyException(msg)
    markers = list(stated).count(DYNAMIC_INDEX)
    if markers != len(op.dynamic_output_shape):
        msg = (f"mismatch in dynamic dims in output_shape and static_output_shape: static_output_shape has"
               f" {markers} dynamic dims while output_shape has {len(op.dynamic_output_shape)} values")
        raise VerifyException(msg)
    _reshapeable(op.src.type, op.result.type, op)


def _collapsible(op: Any) -> None:
    _reshapeable(op.result.type, op.src.type, op)


def _reshapeable(collapsed: Any, expanded: Any, op: Any) -> None:
    if collapsed.get_shape():
        verify_reshape_like_types(collapsed, expanded, op.reassociation)
    elif len(op.reassociation):
        msg = f"expected collapsed rank (0) to equal the number of reassociation maps ({len(op.reassociation)})."
        raise VerifyException(msg)
    elif any(size != 1 for size in expanded.get_shape()):
        msg = "invalid to reshape tensor/memref with non-unit extent dimensions to zero-rank tensor/memref"
        raise VerifyException(msg)


def _paddable(op: Any) -> None:
    source, result = op.source.type, op.result.type
    low, high, shape = op.static_low.get_values(), op.static_high.get_values(), source.get_shape()
    for static, dynamic in ((low, op.low), (high, op.high)):
        if len(static) != len(shape):
            msg = f"expected {len(shape)} pad sizes, one for each axis of '{source}', but got {len(static)}"
            raise VerifyException(msg)
        if list(static).count(DYNAMIC_INDEX) != len(dynamic):
            msg = f"expected {list(static).count(DYNAMIC_INDEX)} dynamic pad sizes but got {len(dynamic)}"
            raise VerifyException(msg)
    inferred = [DYNAMIC_INDEX if DYNAMIC_INDEX in axis else sum(axis) for axis in zip(shape, low, high, strict=True)]
    kind = TensorType(source.element_type, inferred)
    sizes = result.get_shape()
    # A size that is not known to the op may be stated by the result's type; one that is known may not be hidden by it.
    if len(sizes) != len(inferred) or any(known not in (DYNAMIC_INDEX, size)
                                          for size, known in zip(sizes, inferred, strict=True)):
        msg = f"specified type '{result}' does not match the inferred type '{kind}'"
        raise VerifyException(msg)
    arguments = op.region.block.args
    if len(arguments) != len(shape):
        msg = f"expected the block to have {len(shape)} arguments"
        raise VerifyException(msg)
    for number, argument in enumerate(arguments, 1):
        if not isinstance(argument.type, IndexType):
            msg = f"expected block argument {number} to be an index"
            raise VerifyException(msg)
    last = op.region.block.last_op
    if isinstance(last, tensor.YieldOp) and [value.type for value in last.operands] != [result.element_type]:
        msg = "expected yield type to match shape element type"
        raise VerifyException(msg)


ExpandShapeOp = widened(tensor.ExpandShapeOp, _expandable)
CollapseShapeOp = widened(tensor.CollapseShapeOp, _collapsible)
PadOp = widened(tensor.PadOp, _paddable)
Tensor = replacing(tensor.Tensor, ExpandShapeOp, CollapseShapeOp, PadOp)
