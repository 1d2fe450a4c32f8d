"""The ops of llvm: types that LLVM has, widths of casts, what stands in structs and arrays, constants, atomic accesses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, TypeAlias

from xdsl.dialects import llvm
from xdsl.dialects.builtin import (
    DenseIntOrFPElementsAttr,
    IndexType,
    IntAttr,
    IntegerType,
    StringAttr,
    VectorType,
    i1,
)
from xdsl.ir import Attribute
from xdsl.irdl import AttrConstraint, VerificationContext
from xdsl.utils.exceptions import VerifyException

from tilelang_npu.dialects.ir.declaration import Rule, extend_dialect, replace_rules
from tilelang_npu.dialects.mlir.cf import goes, goes_either_way
from tilelang_npu.dialects.mlir.llvm_text import MORE
from tilelang_npu.dialects.mlir.rules import is_float, is_signless, require, with_elements

_AGGREGATES = (llvm.LLVMStructType, llvm.LLVMArrayType)
_WITHOUT_VALUES = (llvm.LLVMVoidType, llvm.LLVMFunctionType)
_ORDERED = {"llvm.load": (0, 1, 2, 4, 7), "llvm.store": (0, 1, 2, 5, 7)}
"""The orders of an atomic access, by their numbers: a load releases nothing, a store acquires nothing."""
_ATOMIC_BITS = (8, 16, 32, 64, 128)


def _is_llvm(type_: Attribute) -> bool:
    return llvm.is_compatible_type(type_) or isinstance(type_, llvm.LLVMVoidType)


def _element(type_: Attribute) -> Any:
    return type_.element_type if isinstance(type_, VectorType) else type_


@dataclass(frozen=True)
class _Kind(AttrConstraint[Attribute]):
    """Types of LLVM of some kind; ``text`` names it in the message."""

    text: str
    holds: Callable[[Attribute], bool]
    vectors: bool = False
    """Whether a vector of such is one as well."""

    def takes(self, type_: Attribute) -> bool:
        """Whether a type is of this kind."""
        return _is_llvm(type_) and self.holds(_element(type_) if self.vectors else type_)

    def verify(self, attr: Attribute, constraint_context: VerificationContext) -> None:
        require(self.takes(attr), f"must be {self.text}, but got '{attr}'")

    def mapping_type_vars(self, type_var_mapping: Any) -> _Kind:
        return self


def _is_pointer(type_: Attribute) -> bool:
    return isinstance(type_, llvm.LLVMPointerType)


_ANY = _Kind("LLVM dialect-compatible type", _is_llvm)
_INTEGER = _Kind("signless integer", is_signless)
_INTEGERS = _Kind("signless integer or LLVM dialect-compatible vector of signless integer", is_signless, vectors=True)
_BOOLS = _Kind("1-bit signless integer or LLVM dialect-compatible vector of 1-bit signless integer",
               lambda type_: type_ == i1, vectors=True)
_FLOAT = _Kind("floating point LLVM type", is_float)
_FLOATS = _Kind("floating point LLVM type or LLVM dialect-compatible vector of floating point LLVM type", is_float,
                vectors=True)
_VECTOR = _Kind("LLVM dialect-compatible vector", lambda type_: isinstance(type_, VectorType))
_POINTER = _Kind("LLVM pointer type", _is_pointer)
_POINTERS = _Kind("LLVM pointer type or LLVM dialect-compatible vector of LLVM pointer type", _is_pointer, vectors=True)
_COMPARED = _Kind("signless integer, pointer or LLVM dialect-compatible vector of such",
                  lambda type_: is_signless(type_) or _is_pointer(type_), vectors=True)
_PRIMITIVE = _Kind("primitive LLVM type", lambda type_: not isinstance(type_, _WITHOUT_VALUES))
_SIZED = _Kind("LLVM type with size", lambda type_: not isinstance(type_, _WITHOUT_VALUES))
_AGGREGATE = _Kind("LLVM aggregate type", lambda type_: isinstance(type_, _AGGREGATES))
_PLAIN = _Kind("LLVM-compatible non-aggregate type", lambda type_: not isinstance(type_, (*_AGGREGATES, *_WITHOUT_VALUES)))

_Kinds: TypeAlias = Sequence[_Kind]


def _of_kinds(what: str, kinds: _Kinds, types: Sequence[Attribute]) -> None:
    """Each type is of its kind; the last kind is that of all that follow."""
    for number, type_ in enumerate(types):
        kind = kinds[min(number, len(kinds) - 1)]
        require(kind.takes(type_), f"{what} #{number} must be {kind.text}, but got '{type_}'")


def _shape(type_: Attribute) -> tuple[int, ...] | None:
    return type_.get_shape() if isinstance(type_, VectorType) else None


# Rules of several ops.

def _compares(predicates: int) -> Rule:
    def check(op: Any) -> None:
        require(op.lhs.type == op.rhs.type, f"requires the same type for all operands: '{op.lhs.type}' vs. '{op.rhs.type}'")
        require(op.res.type == with_elements(op.lhs.type, i1), "result type has i1 element type and same shape as operands")
        require(0 <= op.predicate.value.data < predicates, f"invalid predicate {op.predicate.value.data}")

    return check


def _extends(op: Any) -> None:
    source, result = op.arg.type, op.res.type
    require(_shape(source) == _shape(result), f"input '{source}' and output '{result}' are of incompatible shape")
    bits, wider = _element(source).width.data, _element(result).width.data
    require(bits < wider, f"integer width of the output type is smaller or equal to the integer width of the input type:"
                          f" {wider} and {bits}")


def _casts_bits(op: Any) -> None:
    source, result = op.operands[0].type, op.results[0].type
    pointers = [_is_pointer(_element(type_)) for type_ in (source, result)]
    require(pointers[0] == pointers[1], "can only cast pointers from and to pointers")
    if pointers[0]:
        require(_shape(source) == _shape(result), f"cannot cast '{source}' to '{result}'")
        require(_element(source) == _element(result),
                "cannot cast pointers of different address spaces, use 'llvm.addrspacecast' instead")


def _aligned(op: Any) -> None:
    alignment = op.properties.get("alignment")
    require(alignment is None or alignment.type == IntegerType(64), "alignment is a 64-bit signless integer attribute")


def _accesses(op: Any) -> None:
    """An atomic access is of a type that memory takes at once, and says how it is aligned."""
    _aligned(op)
    ordering = op.properties.get("ordering")
    if ordering is None:
        return
    number = ordering.value.data
    require(ordering.type == IntegerType(64) and number in _ORDERED[op.name], f"unsupported ordering '{ordering}'")
    if number == 0:
        require(op.properties.get("syncscope") is None, "expected syncscope to be null for non-atomic access")
        return
    type_ = op.results[0].type if op.results else op.operands[0].type
    bits = getattr(type_, "bitwidth", None)
    require(_is_pointer(type_) or bits in _ATOMIC_BITS, f"unsupported type '{type_}' for atomic access")
    require("alignment" in op.properties, "expected alignment for atomic access")


def _part(op: Any, whole: Attribute) -> Attribute:
    """The type at a position in structs and arrays that are in each other."""
    for place in op.position.get_values():
        if isinstance(whole, llvm.LLVMArrayType):
            require(0 <= place < whole.size.data, f"position out of bounds: {place}")
            whole = whole.type
            continue
        if not isinstance(whole, llvm.LLVMStructType):
            msg = f"expected LLVM IR structure/array type, got: '{whole}'"
            raise VerifyException(msg)
        require(0 <= place < len(whole.types), f"position out of bounds: {place}")
        whole = whole.types.data[place]
    return whole


def _takes_out(op: Any) -> None:
    whole, result = op.operands[0].type, op.results[0].type
    part = _part(op, whole)
    require(part == result, f"Type mismatch: extracting from '{whole}' should produce '{part}' but this op returns '{result}'")


def _puts_in(op: Any) -> None:
    whole, part = (operand.type for operand in op.operands)
    require(_part(op, whole) == part, f"Type mismatch: cannot insert '{part}' into '{whole}'")
    require(op.results[0].type == whole, f"result type '{op.results[0].type}' is not that of the container, '{whole}'")


def _elements(type_: Attribute) -> int:
    if isinstance(type_, llvm.LLVMArrayType):
        return type_.size.data * _elements(type_.type)
    return prod(_shape(type_) or ())


def _innermost(type_: Attribute) -> Attribute:
    return _innermost(type_.type) if isinstance(type_, llvm.LLVMArrayType) else _element(type_)


def _stands_for(number: Any, type_: Attribute) -> None:
    """A number is of its own type; an index of any integer; a float of an integer of its bits, as which LLVM has some."""
    if is_float(number):
        fits = type_ in (number, IntegerType(number.bitwidth))
        require(fits, f"attribute and type have different float semantics: '{number}' vs. '{type_}'")
        return
    require(isinstance(type_, IntegerType), f"expected integer type, got '{type_}'")
    require(isinstance(number, IndexType) or number == type_,
            f"attribute and type have different integer types: '{number}' vs. '{type_}'")


def _is_constant(op: Any) -> None:
    value, type_ = op.value, op.results[0].type
    if isinstance(value, StringAttr):
        length = len(value.data.encode())
        require(type_ == llvm.LLVMArrayType(IntAttr(length), IntegerType(8)),
                f"expected array type of {length} i8 elements for the string constant, got '{type_}'")
        return
    if not isinstance(value, DenseIntOrFPElementsAttr):
        _stands_for(value.type, type_)
        return
    require(isinstance(type_, (VectorType, llvm.LLVMArrayType)), f"expected vector or array type, got '{type_}'")
    count = prod(value.get_shape())
    require(count == _elements(type_),
            f"type and attribute have a different number of elements: {_elements(type_)} vs. {count}")
    _stands_for(value.get_element_type(), _innermost(type_))


def _points(op: Any) -> None:
    """There is a value for each index that is marked as one; ``inbounds`` says ``nusw`` as well."""
    marks = list(op.rawConstantIndices.get_values()).count(llvm.GEP_USE_SSA_VAL)
    given = len(op.operands) - 1
    require(marks == given, f"expected as many dynamic indices as specified in 'rawConstantIndices': {marks}, got {given}")
    flags = op.noWrapFlags.value.data
    require(op.noWrapFlags.type == IntegerType(32) and flags in (0, 2, 3, 4, 6, 7), f"invalid noWrapFlags '{op.noWrapFlags}'")


def _alike(_: Any) -> None:
    """No rule but the types."""


def _one_kind(op: Any) -> None:
    types = [*op.operand_types, *op.result_types]
    require(len(set(types)) == 1, f"requires the same type for all operands and results, got {', '.join(map(str, types))}")


# The ops: their kinds of operands and of results, and the rule.

_OPS: list[tuple[Sequence[Any], _Kinds, _Kinds, Rule]] = [
    ([llvm.AddOp, llvm.SubOp, llvm.MulOp, llvm.UDivOp, llvm.SDivOp, llvm.URemOp, llvm.SRemOp, llvm.AndOp, llvm.OrOp, llvm.XOrOp,
      llvm.ShlOp, llvm.LShrOp, llvm.AShrOp], [_INTEGERS], [_INTEGERS], _one_kind),
    ([llvm.FAddOp, llvm.FSubOp, llvm.FMulOp, llvm.FDivOp, llvm.FRemOp, llvm.FNegOp, llvm.FAbsOp, llvm.FCeilOp, llvm.FSqrtOp,
      llvm.FFloorOp, llvm.FExp2Op, llvm.FLogOp, llvm.FExpOp, llvm.FSinOp, llvm.FCosOp, llvm.FLog2Op, llvm.VectorFMaxOp,
      llvm.VectorFMinOp, llvm.FCopySignOp, llvm.FMAOp, llvm.FPowOp], [_FLOATS], [_FLOATS], _one_kind),
    ([llvm.ICmpOp], [_COMPARED], [_BOOLS], _compares(10)),
    ([llvm.FCmpOp], [_FLOATS], [_BOOLS], _compares(16)),
    ([llvm.ZExtOp, llvm.SExtOp], [_INTEGERS], [_INTEGERS], _extends),
    ([llvm.TruncOp], [_INTEGERS], [_INTEGERS], _alike),
    ([llvm.SIToFPOp], [_INTEGERS], [_FLOATS], _alike),
    ([llvm.FPExtOp, llvm.FPTruncOp], [_FLOATS], [_FLOATS], _alike),
    ([llvm.BitcastOp], [_PLAIN], [_PLAIN], _casts_bits),
    ([llvm.IntToPtrOp], [_INTEGERS], [_POINTERS], _alike),
    ([llvm.PtrToIntOp], [_POINTERS], [_INTEGERS], _alike),
    ([llvm.VectorReduceFAddOp, llvm.VectorReduceFMulOp], [_FLOAT, _VECTOR], [_FLOAT], _alike),
    ([llvm.LoadOp], [_POINTER], [_SIZED], _accesses),
    ([llvm.StoreOp], [_SIZED, _POINTER], [], _accesses),
    ([llvm.AllocaOp], [_INTEGER], [_POINTER], _aligned),
    ([llvm.GEPOp], [_POINTERS, _INTEGERS], [_POINTERS], _points),
    ([llvm.ExtractValueOp], [_AGGREGATE], [_ANY], _takes_out),
    ([llvm.InsertValueOp], [_AGGREGATE, _PRIMITIVE], [_AGGREGATE], _puts_in),
    ([llvm.InsertElementOp], [_VECTOR, _PRIMITIVE, _INTEGER], [_VECTOR], _alike),
    ([llvm.ShuffleVectorOp], [_VECTOR], [_VECTOR], _alike),
    ([llvm.SelectOp], [_BOOLS, _ANY], [_ANY], _alike),
    ([llvm.UndefOp, llvm.ZeroOp], [], [_ANY], _alike),
    ([llvm.ConstantOp], [], [_ANY], _is_constant),
    ([llvm.BrOp], [_ANY], [], goes),
    ([llvm.CondBrOp], [_ANY], [], goes_either_way),
    ([llvm.StackSaveOp], [], [_POINTER], _alike),
    ([llvm.StackRestoreOp], [_POINTER], [], _alike),
    ([llvm.InlineAsmOp, llvm.CallIntrinsicOp], [_ANY], [_ANY], _alike),
]
_WIDER: dict[str, dict[str, _Kind]] = {
    "llvm.icmp": {"lhs": _COMPARED, "rhs": _COMPARED},
    "llvm.ptrtoint": {"input": _POINTERS, "output": _INTEGERS},
    "llvm.inttoptr": {"input": _INTEGERS, "output": _POINTERS},
    "llvm.select": {"cond": _BOOLS},
    "llvm.mlir.zero": {"res": _ANY},
}
"""Operands and results that take more than xDSL lets them."""


def _ruled(kind: Any, operands: _Kinds, results: _Kinds, rule: Rule) -> Any:
    wider = {**_WIDER.get(kind.name, {}), **MORE.get(kind.name, {})}

    def check(op: Any) -> None:
        if not wider:
            kind.verify_(op)
        _of_kinds("operand", operands, op.operand_types)
        _of_kinds("result", results, op.result_types)
        rule(op)

    return replace_rules(kind, check, **wider)


LLVM = extend_dialect(
    llvm.LLVM, *(_ruled(kind, operands, results, rule) for kinds, operands, results, rule in _OPS for kind in kinds))
