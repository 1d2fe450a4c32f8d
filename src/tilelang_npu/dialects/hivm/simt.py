"""Memory ops of the SIMT vector unit of the 950: accesses to GM by an index per element, by strides, or by rows of a table."""

from __future__ import annotations

from xdsl.dialects.builtin import i1, i32, i64
from xdsl.ir import SSAValue

from tilelang_npu.dialects.hivm.attributes import boolean
from tilelang_npu.dialects.hivm.enums import CacheModifierAttr, EvictionPolicyAttr
from tilelang_npu.dialects.hivm.traits import BOOL, equal_element_types, equal_shapes
from tilelang_npu.dialects.ir.declaration import OneOf, Rule, TableOp, define_op, fail, group
from tilelang_npu.dialects.ir.destination_style import (
    MEMREF,
    TENSOR,
    TENSOR_OR_MEMREF,
    StructuredTableOp,
    destination_style,
    shape_of,
)
from tilelang_npu.dialects.ir.mlir_dtypes import element_type

__all__ = [
    "EmbeddingGatherOp", "GatherLoadOp", "GatherTOp", "IndexPutOp", "IndirectLoadOp", "IndirectStoreOp", "LocalLoadOp",
    "LocalStoreOp", "ScatterStoreOp", "ScatterTOp", "StrideLoadOp", "StrideStoreOp",
]

INT = OneOf(frozenset((i32, i64)), "32-bit signless integer or 64-bit signless integer")
MAX_STRIDED_RANK = 3
_RESULT = " attr-dict (`->` type($result)^)?"


class _ScatterOp(StructuredTableOp):
    """Base of the ops that write only the elements that indices, offsets or strides select."""

    def writes_partially(self) -> bool:
        return True


class _IndexedStoreOp(TableOp):
    """As :class:`_ScatterOp`, for the ops without ``outs``."""

    def writes_partially(self) -> bool:
        return True


# -- rules ---------------------------------------------------------------------------------------------------------------


def _verify_indices(op: TableOp) -> None:
    """Verifies that the indices are integers of 32 or 64 bits, and that the mask has element type i1."""
    if element_type(op.indices.type) not in INT.types:
        fail(f"operand 'indices' must be ranked tensor of {INT.text} values, but got '{op.indices.type}'")
    if op.mask is not None and element_type(op.mask.type) != i1:
        fail(f"operand 'mask' must be ranked tensor of 1-bit signless integer values, but got '{op.mask.type}'")


def _strided(local: str) -> Rule:
    """Returns the rule of an op with a stride and a number of elements for each axis of its on-chip operand ``local``."""

    def check(op: TableOp) -> None:
        value: SSAValue = getattr(op, local)
        rank = len(shape_of(value))
        if not 1 <= rank <= MAX_STRIDED_RANK:
            fail("only support 1-3D")
        if len(op.stride) != rank or len(op.numel) != rank:
            fail(f"stride and numel operand counts must match {local} rank")
        for name in ("stride", "numel"):
            if len(set(getattr(op, name).types)) != 1:
                fail(f"{name} operands must have the same type")
        if {op.offset.type} != {*op.stride.types, *op.numel.types}:
            fail("offset, stride and numel operands must have the same type")

    return check


def _verify_padding(op: TableOp) -> None:
    """Verifies that ``other`` of a strided load has the element type of the source, and the result the destination's type."""
    if op.other.type != element_type(op.src.type):
        fail("other must have the same element type as src")
    if op.result is not None and op.result.type != op.dst.type:
        fail("result must have the same type as dst")


def _verify_rows(op: TableOp) -> None:
    """Verifies the ranks of an embedding gather: the indices select rows, so the destination must have one axis more."""
    index_rank, rank = len(shape_of(op.index)), len(shape_of(op.dst))
    if index_rank not in (1, 2):
        fail("idx of hivm::EmbeddingGatherOp must be of rank [1, 2]!")
    if rank != index_rank + 1:
        fail("dst of hivm::EmbeddingGatherOp must be idxRank + 1!")
    for name in ("offsets", "numels"):
        if len(getattr(op, name)) != rank:
            fail(f"The size of {name} of hivm::EmbeddingGatherOp must be equal to the rank of dst!")


def _elements(first: str, second: str, op: str) -> Rule:
    return equal_element_types(first, second, f"{first} of {op} must have the same element type as {second}")


def _shapes(first: str, second: str, op: str, words: str = "shape and rank") -> Rule:
    return equal_shapes(first, second, f"{first} of {op} must have the same {words} as {second}")


# -- the ops -------------------------------------------------------------------------------------------------------------

_GATHER, _SCATTER = "hivm::GatherLoadOp", "hivm::ScatterStoreOp"
_LOAD, _STORE = "hivm::IndirectLoadOp", "hivm::IndirectStoreOp"

GatherLoadOp = define_op(
    StructuredTableOp, "hivm.hir.gather_load",
    "Loads the elements of GM that a tensor of indices selects; elements whose mask is not set get the value in ``other``.",
    operands={"base": MEMREF, "indices": TENSOR, "burst_len": INT, "mask?": TENSOR, "other?": TENSOR, "dst": TENSOR_OR_MEMREF},
    results={"result?": TENSOR}, same_sizes=True,
    properties={"cache?": CacheModifierAttr, "evict?": EvictionPolicyAttr, "isVolatile?": BOOL},
    text=group("ins", "base", "indices", "burst_len", "mask?", "other?") + " " + group("outs", "dst") + _RESULT,
    reads=("base", "indices", "burst_len", "mask", "other"), pipes=("V",), core="AIV",
    rules=(_verify_indices, equal_element_types("base", "dst"), equal_shapes("indices", "dst"),
           _shapes("mask", "indices", _GATHER), _shapes("other", "indices", _GATHER), _elements("other", "base", _GATHER),
           destination_style))

ScatterStoreOp = define_op(
    _ScatterOp, "hivm.hir.scatter_store", "Stores elements to the positions of GM that a tensor of indices selects.",
    operands={"indices": TENSOR, "data": TENSOR, "burst_len": INT, "mask?": TENSOR, "base": TENSOR_OR_MEMREF},
    results={"result?": TENSOR}, properties={"cache?": CacheModifierAttr, "evict?": EvictionPolicyAttr},
    text=group("ins", "indices", "data", "burst_len", "mask?") + " " + group("outs", "base") + _RESULT,
    reads=("indices", "data", "burst_len", "mask"), writes=("base",), pipes=("V",), core="AIV",
    rules=(_verify_indices, equal_element_types("base", "data"), equal_shapes("indices", "data"),
           _shapes("mask", "data", _SCATTER), destination_style))

LocalLoadOp = define_op(
    TableOp, "hivm.hir.local_load", "Reads a buffer of UB into a tensor.",
    operands={"addr": MEMREF}, results={"result": TENSOR}, text=group("ins", "addr") + " attr-dict `->` type($result)",
    reads=("addr",), pipes=("V",), core="AIV", rules=(
        equal_element_types(
            "addr", "result", "input address of hivm::LocalLoadOp must have the same element type as output tensor"),
        equal_shapes("addr", "result", "input address of hivm::LocalLoadOp must have the same shape as output tensor")))

LocalStoreOp = define_op(
    TableOp, "hivm.hir.local_store", "Writes a tensor into a buffer of UB.",
    operands={"addr": MEMREF, "data": TENSOR}, text=group("ins", "addr", "data") + " attr-dict",
    reads=("data",), writes=("addr",), pipes=("V",), core="AIV", rules=(
        equal_element_types(
            "addr", "data", "dst address of hivm::LocalStoreOp must have the same element type as output tensor"),
        equal_shapes("addr", "data", "dst address of hivm::LocalStoreOp must have the same shape as output tensor")))

StrideLoadOp = define_op(
    StructuredTableOp, "hivm.hir.stride_load",
    "Loads a block of GM with a stride per axis; elements beyond ``numel`` get the value ``other``.",
    operands={"src": MEMREF, "dst": TENSOR_OR_MEMREF, "offset": INT, "other": None, "stride*": INT, "numel*": INT},
    results={"result?": TENSOR_OR_MEMREF}, same_sizes=True,
    text=" ".join((group("ins", "src"), group("outs", "dst"), group("offset", "offset"), group("other", "other"),
                   group("strides", "stride*"), group("numels", "numel*"))) + _RESULT,
    untouched=("other",), pipes=("V",), core="AIV",
    rules=(_strided("dst"), _elements("dst", "src", "hivm::StrideLoadOp"), _verify_padding, destination_style))

StrideStoreOp = define_op(
    _ScatterOp, "hivm.hir.stride_store", "Stores a block to GM with a stride per axis.",
    operands={"dst": MEMREF, "src": TENSOR_OR_MEMREF, "offset": INT, "stride*": INT, "numel*": INT}, same_sizes=True,
    text=" ".join((group("ins", "src"), group("outs", "dst"), group("offset", "offset"), group("strides", "stride*"),
                   group("numels", "numel*"), "attr-dict")),
    pipes=("V",), core="AIV",
    rules=(_strided("src"), _elements("src", "dst", "hivm::StrideStoreOp"), destination_style))

IndirectLoadOp = define_op(
    StructuredTableOp, "hivm.hir.indirect_load",
    "Loads the elements of GM at the offsets in a buffer; elements whose mask is not set get the value in ``other``.",
    operands={"src": MEMREF, "offsets": TENSOR_OR_MEMREF, "dst": TENSOR_OR_MEMREF, "mask?": TENSOR_OR_MEMREF,
              "other?": TENSOR_OR_MEMREF},
    results={"result?": TENSOR_OR_MEMREF}, properties={"isVolatile": (BOOL, boolean(True))},
    text=group("ins", "src", "offsets", "mask?", "other?") + " " + group("outs", "dst") + _RESULT,
    reads=("src", "offsets", "mask", "other"), pipes=("V",), core="AIV",
    rules=(_elements("dst", "src", _LOAD), _shapes("dst", "offsets", _LOAD, "shape"), _shapes("mask", "offsets", _LOAD),
           _shapes("other", "offsets", "hfusion::IndirectLoadOp"), _elements("other", "src", "hfusion::IndirectLoadOp"),
           destination_style))

IndirectStoreOp = define_op(
    _ScatterOp, "hivm.hir.indirect_store", "Stores elements to GM at the offsets in a buffer.",
    operands={"dst": MEMREF, "offsets": TENSOR_OR_MEMREF, "src": TENSOR_OR_MEMREF, "mask?": TENSOR_OR_MEMREF},
    text=group("ins", "src", "offsets", "mask?") + " " + group("outs", "dst") + " attr-dict",
    reads=("src", "offsets", "mask"), pipes=("V",), core="AIV",
    rules=(_elements("src", "dst", _STORE), _shapes("offsets", "src", _STORE), _shapes("mask", "offsets", _STORE),
           destination_style))

EmbeddingGatherOp = define_op(
    StructuredTableOp, "hivm.hir.embedding_gather",
    "Loads the rows of a table of ``bound`` rows in GM that a buffer of indices selects.",
    operands={"src": MEMREF, "index": TENSOR_OR_MEMREF, "dst": TENSOR_OR_MEMREF, "bound": INT, "offsets*": INT, "numels*": INT},
    results={"result*": TENSOR_OR_MEMREF}, same_sizes=True,
    text=group("ins", "src", "index", "bound", "offsets*", "numels*") + " " + group("outs", "dst") + _RESULT,
    reads=("src", "index", "bound", "offsets", "numels"), pipes=("V",), core="AIV", rules=(_verify_rows, destination_style))

GatherTOp = define_op(
    StructuredTableOp, "hivm.hir.gatherT",
    "Loads for each element of the destination the element of GM with the same coordinates, except that an index replaces the"
    " coordinate on axis ``dim``.",
    operands={"src": MEMREF, "index": TENSOR_OR_MEMREF, "dst": TENSOR_OR_MEMREF, "bound": INT, "dim": INT, "src_stride*": INT,
              "index_shape*": INT, "offsets*": INT},
    results={"result?": TENSOR_OR_MEMREF}, same_sizes=True,
    text=group("ins", "src", "index", "bound", "dim", "src_stride*", "index_shape*", "offsets*") + " "
         + group("outs", "dst") + _RESULT,
    reads=("src", "index", "bound", "dim", "src_stride", "index_shape", "offsets"), pipes=("V",), core="AIV",
    rules=(destination_style,))

IndexPutOp = define_op(
    _IndexedStoreOp, "hivm.hir.index_put", "Stores rows to the rows of GM that a buffer of indices selects.",
    operands={"dst": MEMREF, "index": TENSOR_OR_MEMREF, "value": TENSOR_OR_MEMREF, "scatter_dim": INT, "bound": INT,
              "end_offset*": INT, "start_offset*": INT, "dst_stride*": INT}, same_sizes=True,
    text=group("ins", "dst", "index", "value", "scatter_dim", "bound", "end_offset*", "start_offset*", "dst_stride*")
         + " attr-dict",
    reads=("index", "value"), writes=("dst",), pipes=("V",), core="AIV")

ScatterTOp = define_op(
    _IndexedStoreOp, "hivm.hir.scatterT",
    "Stores each element to GM at its own coordinates, except that an index replaces the coordinate on axis ``dim``.",
    operands={"dst": MEMREF, "value": TENSOR_OR_MEMREF, "index_tile": TENSOR_OR_MEMREF, "index_boundary": INT, "dim": INT,
              "dst_stride*": INT, "index_shape*": INT, "offsets*": INT},
    text=group("ins", "dst", "value", "index_tile", "index_boundary", "dim", "dst_stride*", "index_shape*", "offsets*")
         + " attr-dict",
    reads=("value", "index_tile"), writes=("dst",), pipes=("V",), core="AIV",
    rules=(equal_shapes("value", "index_tile", "tensor of value and index_tile of hivm::ScatterTOp must have the same shape"),))

OPERATIONS = (GatherLoadOp, ScatterStoreOp, LocalLoadOp, LocalStoreOp, StrideLoadOp, StrideStoreOp, IndirectLoadOp,
              IndirectStoreOp, EmbeddingGatherOp, GatherTOp, IndexPutOp, ScatterTOp)
