"""Ops that move data: load, store and copy between GM and the on-chip memories, with layout changes; atomics on GM.

The class of an op determines its pipe, except for ``copy``, whose pipe follows from the memory spaces. The verifiers check the
memory spaces only if both the source and the destination have one.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.dialects.builtin import (
    ArrayAttr,
    IndexType,
    IntegerAttr,
    MemRefType,
    NoneAttr,
    TensorType,
    UnitAttr,
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
    var_result_def,
)

from tilelang_npu.dialects.hivm.attributes import boolean, space_of
from tilelang_npu.dialects.hivm.enums import (
    AddressSpaceAttr,
    AtomicKindAttr,
    CoreType,
    CoreTypeAttr,
    EvictionPolicyAttr,
    PadModeAttr,
)
from tilelang_npu.dialects.hivm.scalar import follows_atomic_setting
from tilelang_npu.dialects.hivm.traits import BOOL, compatible, element_types, reject_unknown_fp8, same_shape
from tilelang_npu.dialects.ir.constants import is_known_true
from tilelang_npu.dialects.ir.declaration import Operand, TableOp, define_op, fail, group, operation
from tilelang_npu.dialects.ir.destination_style import (
    SHAPED,
    TENSOR,
    TENSOR_OR_MEMREF,
    StructuredOp,
    StructuredTableOp,
    destination_style,
    results_for,
    shape_of,
)
from tilelang_npu.dialects.ir.mlir_dtypes import dtypes, element_type
from tilelang_npu.target import pipes_of
from tilelang_npu.target.chip_data import OpCore, PipeName, Space

__all__ = [
    "AtomicCasOp", "AtomicRMWOp", "AtomicXchgOp", "CopyOp", "L12UBOp", "LoadOp", "LoadScaleOp", "Nd2NzOp", "Nz2NdOp",
    "StoreOp",
]

MOVABLE = dtypes("f8E4M3FN", "f8E5M2", "i1", "i8", "ui8", "i16", "ui16", "f16", "bf16", "i32", "ui32", "f32", "ui64", "i64")
FALSE = boolean(False)
EITHER_CORE = CoreTypeAttr("CUBE_OR_VECTOR")


def _filled_first(op: LoadOp | Nd2NzOp) -> bool:
    """Whether the destination is known to be filled before the data is written to it."""
    return bool(op.init_out_buffer.value.data) and (op.init_condition is None or is_known_true(op.init_condition))


class _MoveOp(StructuredOp):
    """Base of the ops that move one buffer or tensor into another; verifies their types."""

    def _verify_elements(self) -> tuple[MemRefType | TensorType, MemRefType | TensorType]:
        """Verifies the element types; returns the types of source and destination."""
        (source,), (target,) = (value.type for value in self.ins()[:1]), (value.type for value in self.outs())
        assert isinstance(source, (MemRefType, TensorType))
        assert isinstance(target, (MemRefType, TensorType))
        reject_unknown_fp8(self, source)
        if element_type(source) != element_type(target):
            fail("element types of dst and src should be the same!")
        return source, target

    def _spaces(self, source: Attribute, target: Attribute) -> tuple[Space, Space] | None:
        """The memory spaces of source and destination; None where one of them has none."""
        names: list[Space] = []
        for role, type_ in (("src", source), ("dst", target)):
            space = getattr(type_, "memory_space", None)
            if not isinstance(space, AddressSpaceAttr):
                if space is not None and not isinstance(space, NoneAttr):
                    fail(f"cast {role} memory space attr failed!")
                return None
            names.append(space.short)
        return names[0], names[1]

    def _verify_result(self, target: MemRefType | TensorType, *, padded: bool) -> None:
        """Verifies that the op has one result, which fits the destination."""
        if len(self.results) != 1:
            fail(f"expected the number of tensor results ({len(self.results)}) to be equal to the number of output tensors (1)")
        result = self.results[0].type
        assert isinstance(result, TensorType)
        if result.element_type != element_type(target):
            fail("element types of dst src and res should be the same!")
        if result.get_num_dims() != target.get_num_dims():
            fail("res and dst should have the same dimensions!")
        if not padded and not same_shape(result, target):
            fail("if pad_mode is not set, res and dst shape should be the same!")


@operation(pipes=("MTE2",), rules=(destination_style, element_types((0,), MOVABLE)),
           untouched=("pad_value", "right_padding_num", "init_condition"))
class LoadOp(_MoveOp):
    """Loads from GM into an on-chip memory, and optionally pads the last axis."""

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
                 eviction_policy: str | None = None, core_type: CoreType | None = None) -> None:
        """Builds the op.

        Args:
            src: the data in GM.
            dst: the destination; the op has a result if it is a tensor.
            pad_mode: ``PadNull``, ``PadFirstElem`` or ``PadValue``; without a mode the shapes must be equal.
            pad_value: the value to pad with, of the element type.
            left: number of padding elements before each row (index).
            right: number of padding elements after each row (index).
            init_out_buffer: whether the destination is filled with ``pad_value`` before the load.
            init_condition: an i1 that says at run time whether the destination is filled; without it the fill is unconditional.
            may_implicit_transpose_with_last_axis: whether the toolchain may turn the load into one that transposes.
            eviction_policy: ``EvictNormal``, ``EvictFirst`` or ``EvictLast``.
            core_type: ``CUBE`` or ``VECTOR``, if the spaces do not determine the core.
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

    def core(self) -> OpCore:
        """Returns the core that the op states, or else the core that owns the destination's memory.

        That is ``AIV`` for UB, ``AIC`` for any other memory, and ``either`` if the destination has no memory space.
        """
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

    def writes_partially(self) -> bool:
        """Whether elements after the padding may keep their values, because the number of padding elements is stated."""
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
    """Stores from UB to GM; ``atomic`` combines the values with those in GM by a sum, a maximum or another operation."""

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
        """Builds the op; ``atomic`` is the word of an ``AtomicKindAttr``, such as ``add``, ``max`` or ``min``, or None."""
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

    def reads_destination(self, target: SSAValue) -> bool:
        """Whether the store is atomic, so that it reads the old values in GM.

        A store without ``atomic_kind`` is atomic if the last ``set_atomic`` before it sets a kind other than ``none``.
        """
        return follows_atomic_setting(self) if self.atomic_kind is None else self.atomic_kind.data != "none"


@operation(rules=(destination_style, element_types((0,), MOVABLE)), untouched=("pad_value",))
class CopyOp(_MoveOp):
    """Copies between on-chip memories, or between GM and one of them."""

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
        """Builds the op.

        Args:
            src: the source.
            dst: the destination; the op has a result if it is a tensor.
            pad_mode: ``PadNull``, ``PadFirstElem`` or ``PadValue``; without a mode the shapes must be equal.
            pad_value: the value to pad with, of the element type.
            collapse: groups of axes that are contiguous in the source or in the destination.
        """
        groups = None if collapse is None else ArrayAttr(
            [ArrayAttr([IntegerAttr(axis, i64) for axis in group]) for group in collapse])
        IRDLOperation.__init__(self, operands=[src, dst, pad_value], result_types=[results_for(dst)], properties={
            "pad_mode": None if pad_mode is None else PadModeAttr(pad_mode), "collapse_reassociation": groups})

    def pipes(self) -> tuple[PipeName, ...]:
        """Returns the pipe that copies between the two memory spaces; empty if an operand has no memory space."""
        source, target = space_of(self.src.type), space_of(self.dst.type)
        found = None if source is None or target is None else pipes_of("copy").get((source, target))
        return () if found is None else (found,)

    def reads_destination(self, target: SSAValue) -> bool:
        """Whether the op copies to GM and the last ``set_atomic`` before it makes it combine with the old values there."""
        return space_of(target.type) == "gm" and follows_atomic_setting(self)

    def core(self) -> OpCore:
        """Returns ``AIV`` for a copy from or to UB, ``AIC`` for any other copy from or to L1, else ``either``."""
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


@operation(pipes=("MTE2",), core="AIC", rules=(destination_style,), untouched=("pad_value", "init_condition"))
class Nd2NzOp(StructuredOp):
    """Loads a matrix from GM into L1 and arranges it in fractal blocks (zN)."""

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
        """Builds the op.

        Args:
            src: the matrix [R, C] in GM.
            dst: the 4-D buffer in L1, ``[ceil(C/c0), ceil(R/16), 16, c0]``, where c0 elements have 32 bytes.
            dst_continuous: whether the blocks are contiguous in L1. The lowering to the device library requires it.
            init_out_buffer: whether the destination is filled with ``pad_value`` before the load.
            pad_value: the value to fill with.
            init_condition: an i1 that says at run time whether the destination is filled; without it the fill is unconditional.
        """
        IRDLOperation.__init__(
            self, operands=[src, dst, pad_value, init_condition], result_types=[results_for(dst)], properties={
                "dst_continuous": UnitAttr() if dst_continuous else None,
                "init_out_buffer": boolean(True) if init_out_buffer else None})

    def writes_partially(self) -> bool:
        """Whether elements of the last fractals that are outside of the matrix may keep their old values.

        That is so if the destination is not filled with ``pad_value`` before the load.
        """
        sizes = [shape_of(value) for value in (self.src, self.dst)]
        whole = all(size >= 0 for shape in sizes for size in shape) and prod(sizes[0]) == prod(sizes[1])
        return not whole and not _filled_first(self)


_PLAIN = f"attr-dict {group('ins', 'src')} {group('outs', 'dst')}"
_RESULT = " (`->` type($result_tensor)^)?"


@operation(pipes=("MTE3",), core="AIC", rules=(destination_style,))
class Nz2NdOp(StructuredOp):
    """Stores a matrix from L1, where it is arranged in fractal blocks, to GM in row-major order."""

    name = "hivm.hir.nz2nd"
    src = operand_def(TENSOR_OR_MEMREF)
    dst = operand_def(TENSOR_OR_MEMREF)
    result_tensor = opt_result_def(TENSOR)
    assembly_format = _PLAIN + _RESULT

    def __init__(self, src: Operand, dst: Operand) -> None:
        """Builds the op; it has a result if the destination is a tensor."""
        IRDLOperation.__init__(self, operands=[src, dst], result_types=[results_for(dst)])


# -- ops that no pass builds ----------------------------------------------------------------------------------------------

_OPERANDS = {"src": TENSOR_OR_MEMREF, "dst": TENSOR_OR_MEMREF}
_RESULTS = {"result_tensor?": TENSOR}
_ATOMIC = ("i8", "i16", "i32", "f16", "f32", "i64", "bf16")

L12UBOp = define_op(
    StructuredTableOp, "hivm.hir.l12ub", "Moves a matrix from L1 to UB (950).", operands=_OPERANDS, results=_RESULTS,
    text=_PLAIN + _RESULT, pipes=("MTE1",), core="AIC", rules=(destination_style,))

LoadScaleOp = define_op(
    StructuredTableOp, "hivm.hir.load_scale",
    "Loads the scales of an MX matrix from GM into L1 (950); ``is_transposed`` is the layout of the scales in GM.",
    operands=_OPERANDS, results=_RESULTS, properties={"is_transposed?": (BOOL, FALSE)},
    text=f"{_PLAIN} (`is_transposed` `=` $is_transposed^)?{_RESULT}", pipes=("MTE2",), core="AIC", rules=(destination_style,))


class _AtomicOp(TableOp):
    """Base of the atomic ops on GM, which yield the old value, or combine it with the new one."""

    def reads_destination(self, target: SSAValue) -> bool:
        return True

    def group_results(self, results: Sequence[Attribute], operands: Sequence[object]) -> list[Sequence[Attribute]]:
        """The type of the destination, which follows the source, if it is a tensor."""
        destination = operands[1]
        assert isinstance(destination, (SSAValue, Operation))
        return [list(results) or results_for(destination)]


class _AtomicStructuredOp(_AtomicOp, StructuredOp):
    """As :class:`_AtomicOp`, with ``ins`` and ``outs``."""


AtomicCasOp = define_op(
    _AtomicOp, "hivm.hir.atomic_cas",
    "Atomically replaces an element in GM by a new value if it equals an expected value, for each element of ``dst``; ``src``"
    " is the expected and the new values. Yields the old values.",
    operands={"src*": TENSOR_OR_MEMREF, "dst": TENSOR_OR_MEMREF}, results=_RESULTS, text=_PLAIN + _RESULT,
    reads=("src",), writes=("dst",), rules=(element_types((0,), dtypes(*_ATOMIC, "f8E4M3FN", "f8E5M2")),))

AtomicXchgOp = define_op(
    _AtomicOp, "hivm.hir.atomic_xchg",
    "Atomically replaces elements in GM by new values where the mask is set. Yields the old values.",
    operands={"src": None, "dst": TENSOR_OR_MEMREF, "mask?": TENSOR_OR_MEMREF}, results=_RESULTS,
    text=f"{_PLAIN} {group('mask?', 'mask')}{_RESULT}", reads=("src", "mask"), writes=("dst",),
    rules=(element_types((0,), dtypes(*_ATOMIC)),))

AtomicRMWOp = define_op(
    _AtomicStructuredOp, "hivm.hir.atomic_rmw", "Atomically combines elements in GM with values. Yields the old values.",
    operands={"src": None, "dst": TENSOR_OR_MEMREF}, results=_RESULTS, properties={"atomic_kind": AtomicKindAttr},
    text=f"{_PLAIN} `atomic_kind` `=` $atomic_kind{_RESULT}",
    rules=(destination_style, element_types((0,), dtypes(*_ATOMIC, "i1"))))

OPERATIONS = (LoadOp, StoreOp, CopyOp, Nd2NzOp, Nz2NdOp, L12UBOp, LoadScaleOp, AtomicCasOp, AtomicXchgOp, AtomicRMWOp)
