"""The ops of memref whose rules in xDSL are narrower, or fewer, than those of LLVM 19."""

from __future__ import annotations

from typing import Any

from xdsl.dialects import memref
from xdsl.dialects.builtin import DYNAMIC_INDEX, MemRefType, NoneAttr, StridedLayoutAttr
from xdsl.ir import Attribute
from xdsl.utils.exceptions import VerifyException

from tilelang_npu.dialects.declaration import replacing, widened


def is_identity(kind: MemRefType[Attribute]) -> bool:
    """Whether the elements lie row by row from the start, with or without a layout that says so."""
    if isinstance(kind.layout, NoneAttr):
        return True
    strides = kind.get_strides()
    return (isinstance(kind.layout, StridedLayoutAttr) and strides is not None and None not in strides
            and kind.get_offset() == 0 and strides == MemRefType(kind.element_type, kind.shape).get_strides())


def _reinterpretable(op: Any) -> None:
    for static, dynamic, word in ((op.static_offsets, op.offsets, "offset"), (op.static_sizes, op.sizes, "size"),
                                  (op.static_strides, op.strides, "stride")):
        markers = list(static.get_values()).count(DYNAMIC_INDEX)
        if markers != len(dynamic):
            msg = f"expected {markers} dynamic {word} values but got {len(dynamic)}"
            raise VerifyException(msg)
    source, result = op.source.type, op.result.type
    for word, one, other in (("memory spaces", source.memory_space, result.memory_space),
                             ("element types", source.element_type, result.element_type)):
        if one != other:
            msg = f"different {word} specified for source type '{source}' and result memref type '{result}'"
            raise VerifyException(msg)
    shape = result.get_shape()
    for word, static, rank in (("offset", op.static_offsets, 1), ("size", op.static_sizes, len(shape)),
                               ("stride", op.static_strides, len(shape))):
        if len(static) != rank:
            msg = f"expected {rank} {word} values but got {len(static)}"
            raise VerifyException(msg)
    _agree("size", shape, op.static_sizes)
    strides, offset = result.get_strides(), result.get_offset()
    if strides is None:
        msg = f"expected result type to have strided layout but found '{result}'"
        raise VerifyException(msg)
    _agree("offset", (offset,), op.static_offsets)
    _agree("stride", strides, op.static_strides)


def _agree(word: str, found: Any, stated: Any) -> None:
    """What the type says must be what the op says, where both are numbers."""
    for axis, (actual, expected) in enumerate(zip(found, stated.get_values(), strict=True)):
        if actual is not None and DYNAMIC_INDEX not in (actual, expected) and actual != expected:
            where = "" if word == "offset" else f" in dim = {axis}"
            msg = f"expected result type with {word} = {expected} instead of {actual}{where}"
            raise VerifyException(msg)


def _viewable(op: Any) -> None:
    source, result = op.source.type, op.result.type
    if len(source.get_shape()) != 1:
        msg = f"operand #0 must be 1D memref of 8-bit signless integer values, but got '{source}'"
        raise VerifyException(msg)
    for word, kind in (("base", source), ("result", result)):
        if not is_identity(kind):
            msg = f"unsupported map for {word} memref type '{kind}'"
            raise VerifyException(msg)
    if source.memory_space != result.memory_space:
        msg = f"different memory spaces specified for base memref type '{source}' and view memref type '{result}'"
        raise VerifyException(msg)
    if result.get_shape().count(DYNAMIC_INDEX) != len(op.sizes):
        msg = f"incorrect number of size operands for type '{result}'"
        raise VerifyException(msg)


ReinterpretCastOp = widened(memref.ReinterpretCastOp, _reinterpretable)
ViewOp = widened(memref.ViewOp, _viewable)
MemRef = replacing(memref.MemRef, ReinterpretCastOp, ViewOp)
