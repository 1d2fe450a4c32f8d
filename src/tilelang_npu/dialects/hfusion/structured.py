"""HFusion's ops with ``ins`` and ``outs``, and the text that they share with linalg's named ops.

They compute on tensors, or on buffers in place. The body that MLIR makes of a name is left out, as in its custom form.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, TypeVar

from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, IndexType, IntegerAttr, i1, i32, i64
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    base,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    var_operand_def,
    var_result_def,
)

from tilelang_npu.dialects.hfusion.enums import (
    AtomicKindAttr,
    BinaryFnAttr,
    CompareFnAttr,
    ReduceWithIndexKindAttr,
    RoundModeAttr,
    TernaryFnAttr,
    TypeFnAttr,
    UnaryFnAttr,
    UnsignedModeAttr,
)
from tilelang_npu.dialects.hfusion.rules import (
    compares,
    converts,
    gathers,
    keeps_bits,
    masks,
    of_elements,
    reduces_with_index,
    selects,
)
from tilelang_npu.dialects.hivm.structured import StructuredOp, fail, results_for, shape_of
from tilelang_npu.dialects.ir.declaration import Count, DialectOp, Rule, operation
from tilelang_npu.dialects.mlir.linalg_rules import takes
from tilelang_npu.dialects.mlir.rules import same_size

OpT = TypeVar("OpT", bound=DialectOp)
BOOL = IntegerAttr.constr(i1)
NUMBER = IntegerAttr.constr(i64)
NUMBERS = DenseArrayBase.constr(i64)
INS_OUTS = "`ins` `(` $src `:` type($src) `)` `outs` `(` $dst `:` type($dst) `)`"
RESULT = " (`->` type($result)^)?"
MATRIX = 2


class NamedOp(StructuredOp):
    """Base of the ops that are a name, what they read, what they write, and attributes."""

    BODY_FOLLOWS: ClassVar[bool] = True

    def reads_back(self, target: SSAValue) -> bool:
        """A body may start from what is there."""
        return True

    def __init__(self, inputs: Any, outputs: Any, **properties: Attribute) -> None:
        """Make the op.

        Args:
            inputs: what it reads: tensors, buffers or scalars.
            outputs: where its results go; it has a result for each that is a tensor.
            properties: its own attributes.
        """
        IRDLOperation.__init__(self, operands=[list(inputs), list(outputs)], result_types=[results_for(*outputs)],
                               properties=properties)


def named(name: str, doc: str, *, head: str = "", tail: str = "", result: str = RESULT, rules: Sequence[Rule] = (),
          counted: Count | None = None, **attributes: Any) -> type[NamedOp]:
    """The class of a named op.

    Args:
        name: of the op, with its dialect.
        doc: what it computes.
        head, tail: what its text has in front of ``ins`` and behind ``outs``.
        result: how its text ends.
        rules: what is checked behind its types.
        counted: how many operands it reads and writes, where upstream counts them and does not state it.
        attributes: definitions of its properties; those that the toolchain has a default for may be left out.
    """
    fields: dict[str, Any] = {
        "name": name, "__doc__": doc, "__module__": __name__,
        "src": var_operand_def(), "dst": var_operand_def(), "result": var_result_def(),
        "irdl_options": (AttrSizedOperandSegments(as_property=True),), **attributes,
        "assembly_format": f"attr-dict {head} {INS_OUTS}{tail}{result}"}
    made = type(name.rpartition(".")[2].title().replace("_", "") + "Op", (NamedOp,), fields)
    return operation(rules=rules, counted=counted)(made)


def _one_out(operands: int) -> tuple[int, int]:
    """All are read but the last."""
    return operands - 1, 1


def _two_in(operands: int) -> tuple[int, int]:
    """All are written but the first two."""
    return 2, operands - 2


def _exchange(operands: int) -> tuple[int, int, int]:
    """One is read, one written, and what follows is the mask."""
    return 1, 1, operands - 2


def _product(op: Any) -> None:
    left, right, out = (shape_of(value) for value in (op.src[0], op.src[1], op.dst[0]))
    if not len(left) == len(right) == len(out) == MATRIX:
        return
    if not same_size(left[1], right[0]):
        fail("requires inner dimension of matmul matrix to match")
    if not (same_size(left[0], out[0]) and same_size(right[1], out[1])):
        fail("requires output shape to match with input shapes")


UnaryOp = named(
    "hfusion.elemwise_unary", "A function of each element.", rules=of_elements(1),
    fun=opt_prop_def(UnaryFnAttr), cast=opt_prop_def(TypeFnAttr))
BinaryOp = named(
    "hfusion.elemwise_binary", "A function of each two elements.", rules=of_elements(2),
    fun=opt_prop_def(BinaryFnAttr), cast=opt_prop_def(TypeFnAttr))
TernaryOp = named(
    "hfusion.elemwise_ternary", "A function of each three elements.", rules=of_elements(3),
    fun=opt_prop_def(TernaryFnAttr), cast=opt_prop_def(TypeFnAttr))
CompareOp = named(
    "hfusion.compare", "A comparison of each two elements.", rules=of_elements(2, compares),
    compare_fn=opt_prop_def(CompareFnAttr))
SelectOp = named("hfusion.select", "The second or the third input, as the first says.", rules=of_elements(3, selects))
CastOp = named(
    "hfusion.cast", "A conversion of each element to another type.", rules=of_elements(1, converts),
    round_mode=opt_prop_def(RoundModeAttr),
    enable_overflow=opt_prop_def(BOOL), enable_saturate=opt_prop_def(BOOL),
    cast=opt_prop_def(TypeFnAttr),
    unsigned_mode=opt_prop_def(UnsignedModeAttr))
BitcastOp = named("hfusion.bitcast", "The bits of each element read as another type.", rules=of_elements(1, keeps_bits))
LoadOp = named("hfusion.load", "A copy from global memory.", rules=of_elements(1))
StoreOp = named("hfusion.store", "A copy to global memory.", rules=of_elements(1), atomic_kind=opt_prop_def(AtomicKindAttr))
GroupMatmulOp = named("hfusion.group_matmul", "A product per expert, of as many rows as a table says.")
GatherOp = named("hfusion.gather", "The elements that indices name along an axis.", tail=" `axis` `=` $axis",
                 rules=[takes(2), gathers], counted=_one_out, axis=prop_def(NUMBER))
GatherMaskOp = named("hfusion.gather_mask", "The elements where a mask is set, and how many they are.", rules=[masks],
                     result=" (`->` `(` type($result)^ `)`)?", counted=_two_in)
ReduceWithIndexOp = named(
    "hfusion.reduce_with_index", "The extreme along an axis, and where it stands.", head="$reduce_kind",
    tail=" `dimensions` `=` $dimensions", rules=[reduces_with_index],
    reduce_kind=prop_def(ReduceWithIndexKindAttr), dimensions=prop_def(NUMBERS),
    tie_break_left=opt_prop_def(BOOL), unsigned_src=opt_prop_def(BOOL))
_PER_AXIS = IntegerAttr.constr(i32) | base(ArrayAttr)
_CONV: dict[str, Any] = {key: opt_prop_def(_PER_AXIS) for key in ("stride", "padding", "dilation")}
_CONV["groups"] = opt_prop_def(IntegerAttr.constr(i32))
CONVOLUTIONS = tuple(named(f"hfusion.conv{axes}d", f"A convolution over {axes} axes.", counted=_one_out, **_CONV)
                     for axes in (1, 2, 3))
MatmulMxOp = named("hfusion.matmul_mx", "A product of scaled small floats.", rules=[_product], counted=_one_out,
                   result=" `->` type($result)",
                   lhsFormat=opt_prop_def(IntegerAttr), rhsFormat=opt_prop_def(IntegerAttr))
AtomicCasOp = named("hfusion.atomic_cas", "Replace what is there where it is what is expected.", counted=_one_out)
AtomicRmwOp = named("hfusion.atomic_rmw", "Combine what is there with new values.", tail=" `atomic_kind` `=` $atomic_kind",
                    counted=_one_out, atomic_kind=prop_def(AtomicKindAttr))


@operation(counted=_exchange, reads=("src", "mask"))
class AtomicXchgOp(StructuredOp):
    """Exchange what is there with new values, where a mask is set."""

    name = "hfusion.atomic_xchg"
    src = var_operand_def()
    dst = var_operand_def()
    mask = var_operand_def()
    result = var_result_def()
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    assembly_format = f"attr-dict {INS_OUTS} (`mask` `(` $mask^ `:` type($mask) `)`)?{RESULT}"


@operation(reads=("offset", "strides"))
class ArangeOp(StructuredOp):
    """The offset, and a stride for each step along an axis."""

    name = "hfusion.arange"
    offset = opt_operand_def(IndexType())
    strides = var_operand_def(IndexType())
    dst = var_operand_def()
    result = var_result_def()
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    assembly_format = ("(`offset` `[` $offset^ `]`)? `strides` `[` $strides `]` attr-dict `outs` `(` $dst `:` type($dst) `)`"
                       + RESULT)


STRUCTURED: tuple[type[DialectOp], ...] = (
    UnaryOp, BinaryOp, TernaryOp, CompareOp, SelectOp, CastOp, BitcastOp, LoadOp, StoreOp, GroupMatmulOp, GatherOp,
    GatherMaskOp, ReduceWithIndexOp, *CONVOLUTIONS, MatmulMxOp, AtomicCasOp, AtomicRmwOp, AtomicXchgOp, ArangeOp)
