"""Memory ops of the 950's SIMT vector unit: an index per element, strides, or rows of a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.dialects.builtin import IntegerAttr, i1, i32, i64
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    SameVariadicOperandSize,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    opt_result_def,
    prop_def,
    result_def,
    var_operand_def,
    var_result_def,
)

from tilelang_npu.dialects.hivm.attributes import boolean
from tilelang_npu.dialects.hivm.enums import CacheModifierAttr, EvictionPolicyAttr
from tilelang_npu.dialects.hivm.structured import (
    MEMREF,
    TENSOR,
    TENSOR_OR_MEMREF,
    StructuredOp,
    destination_style,
    fail,
    results_for,
    shape_of,
)
from tilelang_npu.dialects.ir.declaration import DialectOp, OneOf, element_type, operation

Operand = SSAValue | Operation
INT = OneOf(frozenset((i32, i64)), "32-bit signless integer or 64-bit signless integer")
BOOL = IntegerAttr.constr(i1)
MAX_STRIDED_RANK = 3


def _same(op: DialectOp, *names: str, shape: bool = False) -> None:
    """Two operands have one element type, or with ``shape`` one shape."""
    first, second = (getattr(op, name) for name in names)
    if shape:
        if shape_of(first) != shape_of(second):
            fail(f"failed to verify that all of {{{', '.join(names)}}} have same shape")
    elif element_type(first.type) != element_type(second.type):
        fail(f"failed to verify that all of {{{', '.join(names)}}} have same element type")


def _indices_are_integers(op: Any) -> None:
    if element_type(op.indices.type) not in INT.types:
        fail(f"operand 'indices' must be ranked tensor of {INT.text} values, but got '{op.indices.type}'")
    if op.mask is not None and element_type(op.mask.type) != i1:
        fail(f"operand 'mask' must be ranked tensor of 1-bit signless integer values, but got '{op.mask.type}'")


@operation(pipes=("V",), core="AIV", rules=(destination_style,),
           reads=("base", "indices", "burst_len", "mask", "other"))
class GatherLoadOp(StructuredOp):
    """Load the elements of GM that a tensor of indices names."""

    name = "hivm.hir.gather_load"
    base = operand_def(MEMREF)
    indices = operand_def(TENSOR)
    burst_len = operand_def(INT)
    mask = opt_operand_def(TENSOR)
    other = opt_operand_def(TENSOR)
    dst = operand_def(TENSOR_OR_MEMREF)
    cache = opt_prop_def(CacheModifierAttr)
    evict = opt_prop_def(EvictionPolicyAttr)
    isVolatile = opt_prop_def(BOOL)
    result = opt_result_def(TENSOR)
    irdl_options = (SameVariadicOperandSize(),)
    assembly_format = (
        "`ins` `(` $base `:` type($base) `,` $indices `:` type($indices) `,` $burst_len `:` type($burst_len)"
        " (`,` $mask^ `:` type($mask))? (`,` $other^ `:` type($other))? `)` `outs` `(` $dst `:` type($dst) `)` attr-dict"
        " (`->` type($result)^)?"
    )

    def __init__(self, base: Operand, indices: Operand, burst_length: Operand, dst: Operand, *, mask: Operand | None = None,
                 other: Operand | None = None, cache: str | None = None, evict: str | None = None,
                 volatile: bool | None = None) -> None:
        """Make the load; ``mask`` and ``other`` (the value where the mask is not set) are given together or not at all."""
        IRDLOperation.__init__(
            self, operands=[base, indices, burst_length, mask, other, dst], result_types=[results_for(dst)],
            properties={"cache": None if cache is None else CacheModifierAttr(cache),
                        "evict": None if evict is None else EvictionPolicyAttr(evict),
                        "isVolatile": None if volatile is None else boolean(volatile)})

    def verify_(self) -> None:
        _indices_are_integers(self)
        _same(self, "base", "dst")
        _same(self, "indices", "dst", shape=True)
        if self.mask is not None and shape_of(self.mask) != shape_of(self.indices):
            fail("mask of hivm::GatherLoadOp must have the same shape and rank as indices")
        if self.other is not None:
            if shape_of(self.other) != shape_of(self.indices):
                fail("other of hivm::GatherLoadOp must have the same shape and rank as indices")
            if element_type(self.other.type) != element_type(self.base.type):
                fail("other of hivm::GatherLoadOp must have the same element type as base")


@operation(pipes=("V",), core="AIV", rules=(destination_style,),
           reads=("indices", "data", "burst_len", "mask"), writes=("base",))
class ScatterStoreOp(StructuredOp):
    """Store elements to the places of GM that a tensor of indices names."""

    name = "hivm.hir.scatter_store"
    indices = operand_def(TENSOR)
    data = operand_def(TENSOR)
    burst_len = operand_def(INT)
    mask = opt_operand_def(TENSOR)
    base = operand_def(TENSOR_OR_MEMREF)
    cache = opt_prop_def(CacheModifierAttr)
    evict = opt_prop_def(EvictionPolicyAttr)
    result = opt_result_def(TENSOR)
    assembly_format = (
        "`ins` `(` $indices `:` type($indices) `,` $data `:` type($data) `,` $burst_len `:` type($burst_len)"
        " (`,` $mask^ `:` type($mask))? `)` `outs` `(` $base `:` type($base) `)` attr-dict (`->` type($result)^)?"
    )

    def __init__(self, indices: Operand, data: Operand, burst_length: Operand, base: Operand, *, mask: Operand | None = None,
                 cache: str | None = None, evict: str | None = None) -> None:
        IRDLOperation.__init__(
            self, operands=[indices, data, burst_length, mask, base], result_types=[results_for(base)],
            properties={"cache": None if cache is None else CacheModifierAttr(cache),
                        "evict": None if evict is None else EvictionPolicyAttr(evict)})

    def verify_(self) -> None:
        _indices_are_integers(self)
        _same(self, "base", "data")
        _same(self, "indices", "data", shape=True)
        if self.mask is not None and shape_of(self.mask) != shape_of(self.data):
            fail("mask of hivm::ScatterStoreOp must have the same shape and rank as data")

    def keeps(self) -> bool:
        """Only what the places name is written."""
        return True


@operation(pipes=("V",), core="AIV", reads=("addr",))
class LocalLoadOp(DialectOp):
    """Read a buffer of UB into a tensor."""

    name = "hivm.hir.local_load"
    addr = operand_def(MEMREF)
    result = result_def(TENSOR)
    assembly_format = "`ins` `(` $addr `:` type($addr) `)` attr-dict `->` type($result)"

    def __init__(self, address: Operand, type_: Attribute) -> None:
        IRDLOperation.__init__(self, operands=[address], result_types=[type_])

    def verify_(self) -> None:
        if element_type(self.addr.type) != element_type(self.result.type):
            fail("input address of hivm::LocalLoadOp must have the same element type as output tensor")
        if shape_of(self.addr) != shape_of(self.result):
            fail("input address of hivm::LocalLoadOp must have the same shape as output tensor")


@operation(pipes=("V",), core="AIV", reads=("data",), writes=("addr",))
class LocalStoreOp(DialectOp):
    """Write a tensor into a buffer of UB."""

    name = "hivm.hir.local_store"
    addr = operand_def(MEMREF)
    data = operand_def(TENSOR)
    assembly_format = "`ins` `(` $addr `:` type($addr) `,` $data `:` type($data) `)` attr-dict"

    def __init__(self, address: Operand, data: Operand) -> None:
        IRDLOperation.__init__(self, operands=[address, data])

    def verify_(self) -> None:
        if element_type(self.addr.type) != element_type(self.data.type):
            fail("dst address of hivm::LocalStoreOp must have the same element type as output tensor")
        if shape_of(self.addr) != shape_of(self.data):
            fail("dst address of hivm::LocalStoreOp must have the same shape as output tensor")


def _verify_strided(op: Any, local: SSAValue, role: str) -> None:
    rank = len(shape_of(local))
    if not 1 <= rank <= MAX_STRIDED_RANK:
        fail("only support 1-3D")
    if len(op.stride) != rank or len(op.numel) != rank:
        fail(f"stride and numel operand counts must match {role} rank")
    for name in ("stride", "numel"):
        if len(set(getattr(op, name).types)) != 1:
            fail(f"{name} operands must have the same type")
    if {op.offset.type} != {*op.stride.types, *op.numel.types}:
        fail("offset, stride and numel operands must have the same type")


@operation(pipes=("V",), core="AIV", rules=(destination_style,), aside=("other",))
class StrideLoadOp(StructuredOp):
    """Load a block of GM with a stride per axis."""

    name = "hivm.hir.stride_load"
    src = operand_def(MEMREF)
    dst = operand_def(TENSOR_OR_MEMREF)
    offset = operand_def(INT)
    other = operand_def()
    stride = var_operand_def(INT)
    numel = var_operand_def(INT)
    result = opt_result_def(TENSOR_OR_MEMREF)
    irdl_options = (SameVariadicOperandSize(),)
    assembly_format = (
        "`ins` `(` $src `:` type($src) `)` `outs` `(` $dst `:` type($dst) `)` `offset` `(` $offset `:` type($offset) `)`"
        " `other` `(` $other `:` type($other) `)` `strides` `(` `[` $stride `:` type($stride) `]` `)`"
        " `numels` `(` `[` $numel `:` type($numel) `]` `)` attr-dict (`->` type($result)^)?"
    )

    def __init__(self, src: Operand, dst: Operand, offset: Operand, other: Operand, strides: Sequence[Operand],
                 numels: Sequence[Operand]) -> None:
        """Make the load; ``other`` is read where an element lies beyond ``numels``."""
        IRDLOperation.__init__(self, operands=[src, dst, offset, other, list(strides), list(numels)],
                               result_types=[results_for(dst)])

    def verify_(self) -> None:
        _verify_strided(self, self.dst, "dst")
        source = element_type(self.src.type)
        if element_type(self.dst.type) != source:
            fail("dst of hivm::StrideLoadOp must have the same element type as src")
        if self.other.type != source:
            fail("other must have the same element type as src")
        if self.result is not None and self.result.type != self.dst.type:
            fail("result must have the same type as dst")


@operation(pipes=("V",), core="AIV", rules=(destination_style,))
class StrideStoreOp(StructuredOp):
    """Store a block to GM with a stride per axis."""

    name = "hivm.hir.stride_store"
    dst = operand_def(MEMREF)
    src = operand_def(TENSOR_OR_MEMREF)
    offset = operand_def(INT)
    stride = var_operand_def(INT)
    numel = var_operand_def(INT)
    irdl_options = (SameVariadicOperandSize(),)
    assembly_format = (
        "`ins` `(` $src `:` type($src) `)` `outs` `(` $dst `:` type($dst) `)` `offset` `(` $offset `:` type($offset) `)`"
        " `strides` `(` `[` $stride `:` type($stride) `]` `)` `numels` `(` `[` $numel `:` type($numel) `]` `)` attr-dict"
    )

    def __init__(self, src: Operand, dst: Operand, offset: Operand, strides: Sequence[Operand],
                 numels: Sequence[Operand]) -> None:
        IRDLOperation.__init__(self, operands=[dst, src, offset, list(strides), list(numels)])

    def verify_(self) -> None:
        _verify_strided(self, self.src, "src")
        if element_type(self.src.type) != element_type(self.dst.type):
            fail("src of hivm::StrideStoreOp must have the same element type as dst")

    def keeps(self) -> bool:
        """Only what the places name is written."""
        return True


@operation(pipes=("V",), core="AIV", rules=(destination_style,), reads=("src", "offsets", "mask", "other"))
class IndirectLoadOp(StructuredOp):
    """Load the elements of GM at the offsets that a buffer holds."""

    name = "hivm.hir.indirect_load"
    src = operand_def(MEMREF)
    offsets = operand_def(TENSOR_OR_MEMREF)
    dst = operand_def(TENSOR_OR_MEMREF)
    mask = opt_operand_def(TENSOR_OR_MEMREF)
    other = opt_operand_def(TENSOR_OR_MEMREF)
    isVolatile = prop_def(BOOL, default_value=boolean(True))
    result = opt_result_def(TENSOR_OR_MEMREF)
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    assembly_format = (
        "`ins` `(` $src `:` type($src) `,` $offsets `:` type($offsets) (`,` $mask^ `:` type($mask))?"
        " (`,` $other^ `:` type($other))? `)` `outs` `(` $dst `:` type($dst) `)` attr-dict (`->` type($result)^)?"
    )

    def __init__(self, src: Operand, offsets: Operand, dst: Operand, *, mask: Operand | None = None,
                 other: Operand | None = None, volatile: bool = True) -> None:
        IRDLOperation.__init__(self, operands=[src, offsets, dst, mask, other], result_types=[results_for(dst)],
                               properties={"isVolatile": boolean(volatile)})

    def verify_(self) -> None:
        source, shape = element_type(self.src.type), shape_of(self.offsets)
        if element_type(self.dst.type) != source:
            fail("dst of hivm::IndirectLoadOp must have the same element type as src")
        if shape_of(self.dst) != shape:
            fail("dst of hivm::IndirectLoadOp must have the same shape as offsets")
        if self.mask is not None and shape_of(self.mask) != shape:
            fail("mask of hivm::IndirectLoadOp must have the same shape and rank as offsets")
        if self.other is not None:
            if shape_of(self.other) != shape:
                fail("other of hfusion::IndirectLoadOp must have the same shape and rank as offsets")
            if element_type(self.other.type) != source:
                fail("other of hfusion::IndirectLoadOp must have the same element type as src")


@operation(pipes=("V",), core="AIV", rules=(destination_style,), reads=("src", "offsets", "mask"))
class IndirectStoreOp(StructuredOp):
    """Store elements to the offsets of GM that a buffer holds."""

    name = "hivm.hir.indirect_store"
    dst = operand_def(MEMREF)
    offsets = operand_def(TENSOR_OR_MEMREF)
    src = operand_def(TENSOR_OR_MEMREF)
    mask = opt_operand_def(TENSOR_OR_MEMREF)
    assembly_format = (
        "`ins` `(` $src `:` type($src) `,` $offsets `:` type($offsets) (`,` $mask^ `:` type($mask))? `)`"
        " `outs` `(` $dst `:` type($dst) `)` attr-dict"
    )

    def __init__(self, src: Operand, offsets: Operand, dst: Operand, *, mask: Operand | None = None) -> None:
        IRDLOperation.__init__(self, operands=[dst, offsets, src, mask])

    def verify_(self) -> None:
        if element_type(self.src.type) != element_type(self.dst.type):
            fail("src of hivm::IndirectStoreOp must have the same element type as dst")
        if shape_of(self.offsets) != shape_of(self.src):
            fail("offsets of hivm::IndirectStoreOp must have the same shape and rank as src")
        if self.mask is not None and shape_of(self.mask) != shape_of(self.offsets):
            fail("mask of hivm::IndirectStoreOp must have the same shape and rank as offsets")

    def keeps(self) -> bool:
        """Only what the places name is written."""
        return True


@operation(pipes=("V",), core="AIV", rules=(destination_style,),
           reads=("src", "index", "bound", "offsets", "numels"))
class EmbeddingGatherOp(StructuredOp):
    """Load the rows of a table in GM that a buffer of indices names."""

    name = "hivm.hir.embedding_gather"
    src = operand_def(MEMREF)
    index = operand_def(TENSOR_OR_MEMREF)
    dst = operand_def(TENSOR_OR_MEMREF)
    bound = operand_def(INT)
    offsets = var_operand_def(INT)
    numels = var_operand_def(INT)
    result = var_result_def(TENSOR_OR_MEMREF)
    irdl_options = (SameVariadicOperandSize(),)
    assembly_format = (
        "`ins` `(` $src `:` type($src) `,` $index `:` type($index) `,` $bound `:` type($bound) `,`"
        " `[` $offsets `:` type($offsets) `]` `,` `[` $numels `:` type($numels) `]` `)`"
        " `outs` `(` $dst `:` type($dst) `)` attr-dict (`->` type($result)^)?"
    )

    def __init__(self, src: Operand, index: Operand, dst: Operand, bound: Operand, offsets: Sequence[Operand],
                 numels: Sequence[Operand]) -> None:
        """Make the load; ``bound`` is the number of rows, ``offsets`` and ``numels`` one integer per axis of ``dst``."""
        IRDLOperation.__init__(self, operands=[src, index, dst, bound, list(offsets), list(numels)],
                               result_types=[results_for(dst)])

    def verify_(self) -> None:
        index_rank, rank = len(shape_of(self.index)), len(shape_of(self.dst))
        if index_rank not in (1, 2):
            fail("idx of hivm::EmbeddingGatherOp must be of rank [1, 2]!")
        if rank != index_rank + 1:
            fail("dst of hivm::EmbeddingGatherOp must be idxRank + 1!")
        for name in ("offsets", "numels"):
            if len(getattr(self, name)) != rank:
                fail(f"The size of {name} of hivm::EmbeddingGatherOp must be equal to the rank of dst!")


def _lists(*names: str) -> str:
    return " `,` ".join(f"`[` ${name} `:` type(${name}) `]`" for name in names)


def _values(*names: str) -> str:
    return " `,` ".join(f"${name} `:` type(${name})" for name in names)


@operation(pipes=("V",), core="AIV", rules=(destination_style,),
           reads=("src", "index", "bound", "dim", "src_stride", "index_shape", "offsets"))
class GatherTOp(StructuredOp):
    """Load, for each element of the destination, the element of GM whose coordinate on one axis an index replaces."""

    name = "hivm.hir.gatherT"
    src = operand_def(MEMREF)
    index = operand_def(TENSOR_OR_MEMREF)
    dst = operand_def(TENSOR_OR_MEMREF)
    bound = operand_def(INT)
    dim = operand_def(INT)
    src_stride = var_operand_def(INT)
    index_shape = var_operand_def(INT)
    offsets = var_operand_def(INT)
    result = opt_result_def(TENSOR_OR_MEMREF)
    irdl_options = (SameVariadicOperandSize(),)
    assembly_format = (
        f"`ins` `(` {_values('src', 'index', 'bound', 'dim')} `,` {_lists('src_stride', 'index_shape', 'offsets')} `)`"
        " `outs` `(` $dst `:` type($dst) `)` attr-dict (`->` type($result)^)?"
    )

    def __init__(self, src: Operand, index: Operand, dst: Operand, bound: Operand, dim: Operand,
                 src_stride: Sequence[Operand], index_shape: Sequence[Operand], offsets: Sequence[Operand]) -> None:
        """Make the load along axis ``dim``, whose size is ``bound``."""
        IRDLOperation.__init__(
            self, operands=[src, index, dst, bound, dim, list(src_stride), list(index_shape), list(offsets)],
            result_types=[results_for(dst)])


@operation(pipes=("V",), core="AIV",
           reads=("index", "value"), writes=("dst",))
class IndexPutOp(DialectOp):
    """Store rows to the rows of GM that a buffer of indices names."""

    name = "hivm.hir.index_put"
    dst = operand_def(MEMREF)
    index = operand_def(TENSOR_OR_MEMREF)
    value = operand_def(TENSOR_OR_MEMREF)
    scatter_dim = operand_def(INT)
    bound = operand_def(INT)
    end_offset = var_operand_def(INT)
    start_offset = var_operand_def(INT)
    dst_stride = var_operand_def(INT)
    irdl_options = (SameVariadicOperandSize(),)
    assembly_format = (
        f"`ins` `(` {_values('dst', 'index', 'value', 'scatter_dim', 'bound')} `,`"
        f" {_lists('end_offset', 'start_offset', 'dst_stride')} `)` attr-dict"
    )

    def __init__(self, dst: Operand, index: Operand, value: Operand, dim: Operand, bound: Operand,
                 end_offset: Sequence[Operand], start_offset: Sequence[Operand], dst_stride: Sequence[Operand]) -> None:
        IRDLOperation.__init__(
            self, operands=[dst, index, value, dim, bound, list(end_offset), list(start_offset), list(dst_stride)])

    def keeps(self) -> bool:
        """Only what the places name is written."""
        return True


@operation(pipes=("V",), core="AIV",
           reads=("value", "index_tile"), writes=("dst",))
class ScatterTOp(DialectOp):
    """Store each element to the place of GM whose coordinate on one axis an index replaces."""

    name = "hivm.hir.scatterT"
    dst = operand_def(MEMREF)
    value = operand_def(TENSOR_OR_MEMREF)
    index_tile = operand_def(TENSOR_OR_MEMREF)
    index_boundary = operand_def(INT)
    dim = operand_def(INT)
    dst_stride = var_operand_def(INT)
    index_shape = var_operand_def(INT)
    offsets = var_operand_def(INT)
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    assembly_format = (
        f"`ins` `(` {_values('dst', 'value', 'index_tile', 'index_boundary', 'dim')} `,`"
        f" {_lists('dst_stride', 'index_shape', 'offsets')} `)` attr-dict"
    )

    def __init__(self, dst: Operand, value: Operand, index_tile: Operand, boundary: Operand, dim: Operand,
                 dst_stride: Sequence[Operand], index_shape: Sequence[Operand], offsets: Sequence[Operand]) -> None:
        IRDLOperation.__init__(
            self, operands=[dst, value, index_tile, boundary, dim, list(dst_stride), list(index_shape), list(offsets)])

    def verify_(self) -> None:
        if shape_of(self.value) != shape_of(self.index_tile):
            fail("tensor of value and index_tile of hivm::ScatterTOp must have the same shape")

    def keeps(self) -> bool:
        """Only what the places name is written."""
        return True


OPERATIONS = (GatherLoadOp, ScatterStoreOp, LocalLoadOp, LocalStoreOp, StrideLoadOp, StrideStoreOp, IndirectLoadOp,
              IndirectStoreOp, EmbeddingGatherOp, GatherTOp, IndexPutOp, ScatterTOp)
