"""Moving data: load, store and copy between GM and the local memories, layout changes on the way, atomics on GM.

Which pipe does the work follows from the op, for ``copy`` from the memory spaces. Spaces are checked where both are given.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from xdsl.dialects.builtin import (
    ArrayAttr,
    IndexType,
    IntegerAttr,
    MemRefType,
    TensorType,
    UnitAttr,
    i1,
    i64,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    opt_result_def,
    prop_def,
    var_operand_def,
    var_result_def,
)

from tilelang_npu.dialects.hivm.attributes import boolean, space_of
from tilelang_npu.dialects.hivm.enums import AddressSpaceAttr, AtomicKindAttr, CoreTypeAttr, EvictionPolicyAttr, PadModeAttr
from tilelang_npu.dialects.hivm.scalar import adds_as_set
from tilelang_npu.dialects.hivm.structured import (
    SHAPED,
    TENSOR,
    TENSOR_OR_MEMREF,
    StructuredOp,
    compatible,
    destination_style,
    dtypes,
    element_types,
    fail,
    reject_fp8_before_950,
    results_for,
    same_shape,
    shape_of,
)
from tilelang_npu.dialects.ir.declaration import DialectOp, element_type, operation
from tilelang_npu.dialects.ir.effects import surely_true
from tilelang_npu.target import pipes_of

Operand = SSAValue | Operation

MOVABLE = dtypes("f8E4M3FN", "f8E5M2", "i1", "i8", "ui8", "i16", "ui16", "f16", "bf16", "i32", "ui32", "f32", "ui64", "i64")
FALSE = boolean(False)
EITHER_CORE = CoreTypeAttr("CUBE_OR_VECTOR")
BOOL = IntegerAttr.constr(i1)


def _filled_first(op: Any) -> bool:
    """Whether the destination is surely filled before data come into it."""
    return bool(op.init_out_buffer.value.data) and (op.init_condition is None or surely_true(op.init_condition))


class _MoveOp(StructuredOp):
    """What the ops that move one buffer or tensor into another share."""

    def _types(self) -> tuple[MemRefType | TensorType, MemRefType | TensorType]:
        (source,), (target,) = (value.type for value in self.ins()[:1]), (value.type for value in self.outs())
        assert isinstance(source, (MemRefType, TensorType))
        assert isinstance(target, (MemRefType, TensorType))
        return source, target

    def _verify_elements(self) -> tuple[MemRefType | TensorType, MemRefType | TensorType]:
        source, target = self._types()
        reject_fp8_before_950(self, source)
        if element_type(source) != element_type(target):
            fail("element types of dst and src should be the same!")
        return source, target

    def _spaces(self, source: Attribute, target: Attribute) -> tuple[str, str] | None:
        """Both memory spaces; None where one of them is not given."""
        names = []
        for role, type_ in (("src", source), ("dst", target)):
            space = getattr(type_, "memory_space", None)
            if space is None or not isinstance(space, AddressSpaceAttr):
                if space is not None and type(space).__name__ != "NoneAttr":
                    fail(f"cast {role} memory space attr failed!")
                return None
            names.append(space.data)
        return names[0], names[1]

    def _result(self) -> TensorType:
        if len(self.results) != 1:
            fail(f"expected the number of tensor results ({len(self.results)}) to be equal to the number of output tensors (1)")
        type_ = self.results[0].type
        assert isinstance(type_, TensorType)
        return type_

    def _verify_result(self, target: MemRefType | TensorType, *, padded: bool) -> None:
        result = self._result()
        if result.element_type != element_type(target):
            fail("element types of dst src and res should be the same!")
        if result.get_num_dims() != target.get_num_dims():
            fail("res and dst should have the same dimensions!")
        if not padded and not same_shape(result, target):
            fail("if pad_mode is not set, res and dst shape should be the same!")


@operation(pipes=("MTE2",), rules=(destination_style, element_types((0,), MOVABLE)),
           aside=("pad_value", "right_padding_num", "init_condition"))
class LoadOp(_MoveOp):
    """Load from GM into a local memory, padding the last axis if asked to."""

    name = "hivm.hir.load"
    src = operand_def(TENSOR_OR_MEMREF)
    dst = operand_def(TENSOR_OR_MEMREF)
    pad_mode = opt_prop_def(PadModeAttr)
    pad_value = opt_operand_def()
    left_padding_num = opt_operand_def(IndexType())
    right_padding_num = opt_operand_def()
    init_out_buffer = opt_prop_def(BOOL, default_value=FALSE)
    init_condition = opt_operand_def()
    may_implicit_transpose_with_last_axis = opt_prop_def(BOOL, default_value=FALSE)
    eviction_policy = opt_prop_def(EvictionPolicyAttr)
    tcoretype = opt_prop_def(CoreTypeAttr, default_value=EITHER_CORE)
    result_tensor = opt_result_def(TENSOR)
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    assembly_format = (
        "`ins` `(` $src `:` type($src) `)` `outs` `(` $dst `:` type($dst) `)` attr-dict"
        " (`pad_mode` `=` $pad_mode^)? (`pad_value` `=` $pad_value^ `:` type($pad_value))?"
        " (`left_padding_num` `=` $left_padding_num^ `:` type($left_padding_num))?"
        " (`init_out_buffer` `=` $init_out_buffer^)?"
        " (`right_padding_num` `=` $right_padding_num^ `:` type($right_padding_num))?"
        " (`init_condition` `=` $init_condition^ `:` type($init_condition))?"
        " (`may_implicit_transpose_with_last_axis` `=` $may_implicit_transpose_with_last_axis^)?"
        " (`eviction_policy` `=` $eviction_policy^)? (`core_type` `=` $tcoretype^)? (`->` type($result_tensor)^)?"
    )

    def __init__(self, src: Operand, dst: Operand, *, pad_mode: str | None = None, pad_value: Operand | None = None,
                 left: Operand | None = None, right: Operand | None = None, init_out_buffer: bool = False,
                 init_condition: Operand | None = None, may_implicit_transpose_with_last_axis: bool = False,
                 eviction_policy: str | None = None, core_type: str | None = None) -> None:
        """Make the load.

        Args:
            src: the data in GM.
            dst: where it goes; a tensor destination gives the op a result.
            pad_mode: ``PadNull``, ``PadFirstElem`` or ``PadValue``; without one the shapes are equal.
            pad_value: the value to pad with, of the element type.
            left: number of elements to pad before each row (index).
            right: number of elements to pad behind each row (index).
            init_out_buffer: fill the destination with ``pad_value`` first.
            init_condition: fill only where this i1 holds.
            may_implicit_transpose_with_last_axis: the toolchain may turn the load into a transposing one.
            eviction_policy: ``EvictNormal``, ``EvictFirst`` or ``EvictLast``.
            core_type: ``CUBE`` or ``VECTOR`` where the spaces do not tell.
        """
        IRDLOperation.__init__(
            self, operands=[src, dst, pad_value, left, right, init_condition], result_types=[results_for(dst)],
            properties={
                "pad_mode": None if pad_mode is None else PadModeAttr(pad_mode),
                "init_out_buffer": boolean(True) if init_out_buffer else None,
                "may_implicit_transpose_with_last_axis":
                    boolean(True) if may_implicit_transpose_with_last_axis else None,
                "eviction_policy": None if eviction_policy is None else EvictionPolicyAttr(eviction_policy),
                "tcoretype": None if core_type is None else CoreTypeAttr(core_type),
            })

    def core(self) -> str:
        """``AIV`` for a load into UB, else ``AIC``; ``either`` where the spaces are not known."""
        stated = self.tcoretype
        if stated is not None and stated.data in ("CUBE", "VECTOR"):
            return "AIC" if stated.data == "CUBE" else "AIV"
        target = space_of(self.dst.type)
        if target is None:
            return "either"
        return "AIV" if target == "ub" else "AIC"

    def verify_(self) -> None:
        source, target = self._verify_elements()
        if source.get_num_dims() != target.get_num_dims():
            fail("src and dst should have the same dimensions!")
        self._verify_padding(source, target)
        if self.on_memrefs():
            spaces = self._spaces(source, target)
            if spaces is not None and (spaces[0] != "gm" or spaces[1] == "gm"):
                fail("only support src == gm and dst != gm currently!")
        elif self.on_tensors():
            self._verify_result(target, padded=self.pad_mode is not None)
        else:
            fail("dst/src should be memref/memref or tensor/tensor, res should be tensor!")

    def keeps(self) -> bool:
        """What is behind a stated number of elements of padding stays what it was."""
        return self.pad_mode is not None and self.right_padding_num is not None and not _filled_first(self)

    def _verify_padding(self, source: MemRefType | TensorType, target: MemRefType | TensorType) -> None:
        mode = "PadNull" if self.pad_mode is None else self.pad_mode.data
        pad_value = self.pad_value
        if mode == "PadNull":
            if not same_shape(source, target):
                fail("if pad_mode is not set, src and dst shape should be the same!")
            if pad_value is not None:
                fail("if pad_mode is not set, pad_value should not be set!")
        if self.pad_mode is not None:
            if mode == "PadValue" and pad_value is None:
                fail("if padmode is PadValue, pad_value is required!")
            if mode == "PadFirstElem" and pad_value is not None:
                fail("if padmode is PadFirstElem, pad_value should not be set!")
            *outer_source, last_source = source.get_shape()
            *outer_target, last_target = target.get_shape()
            if not all(compatible(sizes) for sizes in zip(outer_source, outer_target, strict=True)):
                fail("only the last dimension can be different")
            if min(last_source, last_target) >= 0 and last_target < last_source:
                fail("dst last dimension cannot be less than src's")
        _verify_pad_type(pad_value, target)


def _verify_pad_type(pad_value: SSAValue | None, target: Attribute) -> None:
    if pad_value is not None and pad_value.type != element_type(target):
        fail("dtype of pad_value and element type of dst/src should be the same!")


@operation(pipes=("MTE3",), core="AIV", rules=(destination_style, element_types((0,), MOVABLE)))
class StoreOp(_MoveOp):
    """Store from UB to GM, adding to what is there (or taking the maximum ...) if ``atomic`` says so."""

    name = "hivm.hir.store"
    src = operand_def(TENSOR_OR_MEMREF)
    dst = operand_def(TENSOR_OR_MEMREF)
    atomic_kind = opt_prop_def(AtomicKindAttr)
    may_implicit_transpose_with_last_axis = opt_prop_def(BOOL, default_value=FALSE)
    result_tensor = opt_result_def(TENSOR)
    assembly_format = (
        "`ins` `(` $src `:` type($src) `)` `outs` `(` $dst `:` type($dst) `)` attr-dict (`atomic` `=` $atomic_kind^)?"
        " (`->` type($result_tensor)^)?"
    )

    def __init__(self, src: Operand, dst: Operand, *, atomic: str | None = None) -> None:
        """Make the store; ``atomic`` is ``add``, ``max``, ``min`` or another atomic kind."""
        IRDLOperation.__init__(self, operands=[src, dst], result_types=[results_for(dst)], properties={
            "atomic_kind": None if atomic is None else AtomicKindAttr(atomic)})

    def verify_(self) -> None:
        source, target = self._verify_elements()
        if not same_shape(source, target):
            fail("src and dst should have the same dimensions!")
        if self.on_memrefs():
            spaces = self._spaces(source, target)
            if spaces is not None and spaces != ("ub", "gm"):
                fail("only support store ub to gm currently!")
        elif self.on_tensors():
            self._verify_result(target, padded=True)

    def reads_back(self, target: SSAValue) -> bool:
        """An atomic store combines with what is there; where it does not say, the core is set to what it does."""
        return adds_as_set(self) if self.atomic_kind is None else self.atomic_kind.data != "none"


@operation(rules=(destination_style, element_types((0,), MOVABLE)), aside=("pad_value",))
class CopyOp(_MoveOp):
    """Copy between local memories, or between GM and one of them."""

    name = "hivm.hir.copy"
    src = operand_def(TENSOR_OR_MEMREF)
    dst = operand_def(TENSOR_OR_MEMREF)
    pad_mode = opt_prop_def(PadModeAttr)
    pad_value = opt_operand_def()
    collapse_reassociation = opt_prop_def(ArrayAttr.constr(ArrayAttr.constr(IntegerAttr.constr(i64))))
    result_tensor = opt_result_def(TENSOR)
    assembly_format = (
        "`ins` `(` $src `:` type($src) `)` `outs` `(` $dst `:` type($dst) `)` attr-dict (`pad_mode` `=` $pad_mode^)?"
        " (`pad_value` `=` $pad_value^ `:` type($pad_value))?"
        " (`collapse_reassociation` `=` $collapse_reassociation^)? (`->` type($result_tensor)^)?"
    )

    def __init__(self, src: Operand, dst: Operand, *, pad_mode: str | None = None, pad_value: Operand | None = None,
                 collapse: Sequence[Sequence[int]] | None = None) -> None:
        """Make the copy; ``collapse`` lists groups of axes that are contiguous together on one side."""
        groups = None if collapse is None else ArrayAttr(
            [ArrayAttr([IntegerAttr(axis, i64) for axis in group]) for group in collapse])
        IRDLOperation.__init__(self, operands=[src, dst, pad_value], result_types=[results_for(dst)], properties={
            "pad_mode": None if pad_mode is None else PadModeAttr(pad_mode), "collapse_reassociation": groups})

    def pipes(self) -> tuple[str, ...]:
        """The pipe of these memory spaces; empty where they are not given."""
        found = pipes_of("copy").get((space_of(self.src.type) or "", space_of(self.dst.type) or ""))
        return () if found is None else (found,)

    def reads_back(self, target: SSAValue) -> bool:
        """To GM it combines with what is there where the core is set to, as a store does."""
        return space_of(target.type) == "gm" and adds_as_set(self)

    def core(self) -> str:
        """``AIC`` for a copy from GM to L1, ``AIV`` where UB takes part, else ``either``."""
        spaces = {space_of(self.src.type), space_of(self.dst.type)}
        if "ub" in spaces:
            return "AIV"
        return "AIC" if "cbuf" in spaces else "either"

    def verify_(self) -> None:
        source, target = self._verify_elements()
        if source.get_num_dims() != target.get_num_dims():
            fail("src and dst should have the same dimensions!")
        padded = self.pad_mode is not None
        if not padded and not same_shape(source, target):
            fail("if pad_mode is not set, src and dst shape should be the same!")
        if self.pad_mode is not None and self.pad_mode.data == "PadValue" and self.pad_value is None:
            fail("if padmode is PadValue, pad_value is required!")
        _verify_pad_type(self.pad_value, target)
        if self.on_memrefs():
            spaces = self._spaces(source, target)
            if spaces is not None and spaces not in pipes_of("copy"):
                fail(f"Unsupported copy from {spaces[0]} to {spaces[1]}!")
        elif self.on_tensors():
            self._verify_result(target, padded=padded)
        else:
            if self.results:
                self._verify_result(target, padded=padded)
            space = space_of(target)
            if space not in (None, "ub", "cbuf"):
                fail(f"Unsupported copy to {space}!")


@operation(pipes=("MTE2",), core="AIC", rules=(destination_style,), aside=("pad_value", "init_condition"))
class Nd2NzOp(StructuredOp):
    """Load a matrix from GM into L1 and lay it out in fractal blocks (zN)."""

    name = "hivm.hir.nd2nz"
    src = operand_def(SHAPED)
    dst = operand_def(SHAPED)
    dst_continuous = opt_prop_def(UnitAttr)
    init_out_buffer = opt_prop_def(BOOL, default_value=FALSE)
    pad_value = opt_operand_def()
    init_condition = opt_operand_def()
    result_tensor = var_result_def(TENSOR)
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    assembly_format = (
        "attr-dict `ins` `(` $src `:` type($src) `)` `outs` `(` $dst `:` type($dst) `)`"
        " (`init_out_buffer` `=` $init_out_buffer^)? (`pad_value` `=` $pad_value^ `:` type($pad_value))?"
        " (`init_condition` `=` $init_condition^ `:` type($init_condition))? (`->` type($result_tensor)^)?"
    )

    def __init__(self, src: Operand, dst: Operand, *, dst_continuous: bool = True, init_out_buffer: bool = False,
                 pad_value: Operand | None = None, init_condition: Operand | None = None) -> None:
        """Make the load.

        Args:
            src: the matrix [R, C] in GM.
            dst: the 4-D buffer in L1, ``[ceil(C/c0), ceil(R/16), 16, c0]``, c0 = 32 bytes.
            dst_continuous: the blocks lie next to each other; lowering to the device library needs it.
            init_out_buffer: fill the destination with ``pad_value`` first.
            pad_value: the value to fill with.
            init_condition: fill only where this i1 holds.
        """
        IRDLOperation.__init__(
            self, operands=[src, dst, pad_value, init_condition], result_types=[results_for(dst)], properties={
                "dst_continuous": UnitAttr() if dst_continuous else None,
                "init_out_buffer": boolean(True) if init_out_buffer else None})

    def keeps(self) -> bool:
        """What of the blocks the matrix does not reach stays what it was."""
        sizes = [shape_of(value) for value in (self.src, self.dst)]
        whole = all(size >= 0 for shape in sizes for size in shape) and prod(sizes[0]) == prod(sizes[1])
        return not whole and not _filled_first(self)


class _PlainMoveOp(StructuredOp):
    """An op with a source, a destination and nothing else."""

    def __init__(self, src: Operand, dst: Operand) -> None:
        """Make the op; a tensor destination gives it a result."""
        IRDLOperation.__init__(self, operands=[src, dst], result_types=[results_for(dst)])


_PLAIN = "attr-dict `ins` `(` $src `:` type($src) `)` `outs` `(` $dst `:` type($dst) `)`"
_RESULT = " (`->` type($result_tensor)^)?"


@operation(pipes=("MTE3",), core="AIC", rules=(destination_style,))
class Nz2NdOp(_PlainMoveOp):
    """Store a matrix in fractal blocks from L1 to GM as rows."""

    name = "hivm.hir.nz2nd"
    src = operand_def(TENSOR_OR_MEMREF)
    dst = operand_def(TENSOR_OR_MEMREF)
    result_tensor = opt_result_def(TENSOR)
    assembly_format = _PLAIN + _RESULT


@operation(pipes=("MTE1",), core="AIC", rules=(destination_style,))
class L12UBOp(_PlainMoveOp):
    """Move a matrix from L1 to UB (950)."""

    name = "hivm.hir.l12ub"
    src = operand_def(TENSOR_OR_MEMREF)
    dst = operand_def(TENSOR_OR_MEMREF)
    result_tensor = opt_result_def(TENSOR)
    assembly_format = _PLAIN + _RESULT


@operation(pipes=("MTE2",), core="AIC", rules=(destination_style,))
class LoadScaleOp(StructuredOp):
    """Load the scales of an MX matrix from GM into L1 (950)."""

    name = "hivm.hir.load_scale"
    src = operand_def(TENSOR_OR_MEMREF)
    dst = operand_def(TENSOR_OR_MEMREF)
    is_transposed = opt_prop_def(BOOL, default_value=FALSE)
    result_tensor = opt_result_def(TENSOR)
    assembly_format = _PLAIN + " (`is_transposed` `=` $is_transposed^)?" + _RESULT

    def __init__(self, src: Operand, dst: Operand, *, is_transposed: bool = False) -> None:
        """Make the load; ``is_transposed`` tells how the scales lie in GM."""
        IRDLOperation.__init__(self, operands=[src, dst], result_types=[results_for(dst)], properties={
            "is_transposed": boolean(True) if is_transposed else None})


_ATOMIC = ("i8", "i16", "i32", "f16", "f32", "i64", "bf16")


@operation(rules=(element_types((0,), dtypes(*_ATOMIC, "f8E4M3FN", "f8E5M2")),), reads=("src",), writes=("dst",))
class AtomicCasOp(DialectOp):
    """Compare memory in GM with an expected value and replace it where they are equal; yields what was there."""

    name = "hivm.hir.atomic_cas"
    src = var_operand_def(TENSOR_OR_MEMREF)
    dst = operand_def(TENSOR_OR_MEMREF)
    result_tensor = opt_result_def(TENSOR)
    assembly_format = _PLAIN + _RESULT

    def __init__(self, expected: Operand, new: Operand, dst: Operand) -> None:
        IRDLOperation.__init__(self, operands=[[expected, new], dst], result_types=[results_for(dst)])

    def reads_back(self, target: SSAValue) -> bool:
        """What is there is compared, and yielded."""
        return True


@operation(rules=(element_types((0,), dtypes(*_ATOMIC)),), reads=("src", "mask"), writes=("dst",))
class AtomicXchgOp(DialectOp):
    """Exchange memory in GM with new values, where the mask is set; yields what was there."""

    name = "hivm.hir.atomic_xchg"
    src = operand_def()
    dst = operand_def(TENSOR_OR_MEMREF)
    mask = opt_operand_def(TENSOR_OR_MEMREF)
    result_tensor = opt_result_def(TENSOR)
    assembly_format = _PLAIN + " (`mask` `(` $mask^ `:` type($mask) `)`)?" + _RESULT

    def __init__(self, src: Operand, dst: Operand, mask: Operand | None = None) -> None:
        IRDLOperation.__init__(self, operands=[src, dst, mask], result_types=[results_for(dst)])

    def reads_back(self, target: SSAValue) -> bool:
        """What is there is yielded."""
        return True


@operation(rules=(destination_style, element_types((0,), dtypes(*_ATOMIC, "i1"))))
class AtomicRMWOp(StructuredOp):
    """Combine memory in GM with values in one step; yields what was there."""

    name = "hivm.hir.atomic_rmw"
    src = operand_def()
    dst = operand_def(TENSOR_OR_MEMREF)
    atomic_kind = prop_def(AtomicKindAttr)
    result_tensor = opt_result_def(TENSOR)
    assembly_format = _PLAIN + " `atomic_kind` `=` $atomic_kind" + _RESULT

    def __init__(self, src: Operand, dst: Operand, kind: str) -> None:
        IRDLOperation.__init__(self, operands=[src, dst], result_types=[results_for(dst)],
                               properties={"atomic_kind": AtomicKindAttr(kind)})

    def reads_back(self, target: SSAValue) -> bool:
        """What is there is combined with."""
        return True


OPERATIONS = (LoadOp, StoreOp, CopyOp, Nd2NzOp, Nz2NdOp, L12UBOp, LoadScaleOp, AtomicCasOp, AtomicXchgOp, AtomicRMWOp)
