"""HFusion's ops in destination-passing style, which have inputs (``ins``) and destinations (``outs``)."""

from __future__ import annotations

from xdsl.dialects.builtin import ArrayAttr, IndexType, IntegerAttr, i32
from xdsl.irdl import base

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
    elementwise_rules,
    verify_bitcast,
    verify_cast,
    verify_compare,
    verify_gather,
    verify_gather_mask,
    verify_reduce_with_index,
    verify_select,
)
from tilelang_npu.dialects.hivm.traits import BOOL, NUMBER
from tilelang_npu.dialects.ir.declaration import DialectOp, TableOp, define_op, fail, group
from tilelang_npu.dialects.ir.destination_style import StructuredTableOp, shape_of
from tilelang_npu.dialects.mlir.linalg_rules import input_count
from tilelang_npu.dialects.mlir.named_ops import INS_OUTS, NUMBERS, RESULT, define_named_op
from tilelang_npu.dialects.mlir.rules import may_be_equal

_MATRIX_RANK = 2


# How MLIR divides the operands into inputs, destinations and masks, by their number.


def _one_destination(operands: int) -> tuple[int, int]:
    return operands - 1, 1


def _two_inputs(operands: int) -> tuple[int, int]:
    return 2, operands - 2


def _masked_exchange(operands: int) -> tuple[int, int, int]:
    return 1, 1, operands - 2


def _product(op: TableOp) -> None:
    """Verifies that the shapes of the two factors and of the product of a matrix product fit each other."""
    left, right, out = (shape_of(value) for value in (op.src[0], op.src[1], op.dst[0]))
    if not len(left) == len(right) == len(out) == _MATRIX_RANK:
        return
    if not may_be_equal(left[1], right[0]):
        fail("requires inner dimension of matmul matrix to match")
    if not (may_be_equal(left[0], out[0]) and may_be_equal(right[1], out[1])):
        fail("requires output shape to match with input shapes")


_PER_AXIS = IntegerAttr.constr(i32) | base(ArrayAttr)
_CONVOLUTION = {"stride?": _PER_AXIS, "padding?": _PER_AXIS, "dilation?": _PER_AXIS, "groups?": IntegerAttr.constr(i32)}

NAMED: tuple[type[DialectOp], ...] = (
    define_named_op("hfusion.elemwise_unary", "Applies the function ``fun`` to each element.", rules=elementwise_rules(1),
                    properties={"fun?": UnaryFnAttr, "cast?": TypeFnAttr}),
    define_named_op("hfusion.elemwise_binary", "Applies the function ``fun`` to each pair of elements.",
                    rules=elementwise_rules(2),
                    properties={"fun?": BinaryFnAttr, "cast?": TypeFnAttr}),
    define_named_op("hfusion.elemwise_ternary", "Applies the function ``fun`` to each triple of elements.",
                    rules=elementwise_rules(3),
                    properties={"fun?": TernaryFnAttr, "cast?": TypeFnAttr}),
    define_named_op("hfusion.compare", "Compares each pair of elements.", rules=elementwise_rules(2, verify_compare),
                    properties={"compare_fn?": CompareFnAttr}),
    define_named_op("hfusion.select",
                    "Selects the element of the second input where the first input is true, else that of the third.",
                    rules=elementwise_rules(3, verify_select)),
    define_named_op("hfusion.cast", "Converts each element to another type.", rules=elementwise_rules(1, verify_cast),
                    properties={"round_mode?": RoundModeAttr, "enable_overflow?": BOOL, "enable_saturate?": BOOL,
                                "cast?": TypeFnAttr, "unsigned_mode?": UnsignedModeAttr}),
    define_named_op("hfusion.bitcast", "Reinterprets the bits of each element as another type.",
                    rules=elementwise_rules(1, verify_bitcast)),
    define_named_op("hfusion.load", "Copies from global memory.", rules=elementwise_rules(1)),
    define_named_op("hfusion.store", "Copies to global memory.", rules=elementwise_rules(1),
                    properties={"atomic_kind?": AtomicKindAttr}),
    define_named_op("hfusion.group_matmul", "Computes one matrix product per expert; a table gives the rows of each."),
    define_named_op("hfusion.gather", "Gathers the elements at given indices along an axis.", tail=" `axis` `=` $axis",
                    rules=[input_count(2), verify_gather], counted=_one_destination, properties={"axis": NUMBER}),
    define_named_op("hfusion.gather_mask", "Extracts the elements whose mask is set, and counts them.",
                    rules=[verify_gather_mask],
                    result=" (`->` `(` type($result)^ `)`)?", counted=_two_inputs),
    define_named_op("hfusion.reduce_with_index", "Finds the largest or smallest element along an axis, and its index.",
                    head="$reduce_kind",
                    tail=" `dimensions` `=` $dimensions", rules=[verify_reduce_with_index],
                    properties={"reduce_kind": ReduceWithIndexKindAttr, "dimensions": NUMBERS, "tie_break_left?": BOOL,
                                "unsigned_src?": BOOL}),
    *(define_named_op(f"hfusion.conv{axes}d", f"Computes a convolution over {axes} axes.", counted=_one_destination,
                      properties=_CONVOLUTION) for axes in (1, 2, 3)),
    define_named_op("hfusion.matmul_mx", "Multiplies two matrices of scaled 8-bit or 4-bit floats.",
                    rules=[_product], counted=_one_destination,
                    result=" `->` type($result)", properties={"lhsFormat?": IntegerAttr, "rhsFormat?": IntegerAttr}),
    define_named_op("hfusion.atomic_cas", "Atomically replaces each element that equals an expected value.",
                    counted=_one_destination),
    define_named_op("hfusion.atomic_rmw", "Atomically combines elements with new values.",
                    tail=" `atomic_kind` `=` $atomic_kind",
                    counted=_one_destination, properties={"atomic_kind": AtomicKindAttr}),
    define_op(StructuredTableOp, "hfusion.atomic_xchg",
              "Atomically replaces elements by new values where a mask is set, and yields the old values.",
              operands={"src*": None, "dst*": None, "mask*": None}, results={"result*": None},
              text=f"attr-dict {INS_OUTS} {group('mask?', 'mask')}{RESULT}", counted=_masked_exchange, reads=("src", "mask")),
    define_op(StructuredTableOp, "hfusion.arange", "Writes the offset plus the sum over all axes of index times stride.",
              operands={"offset?": IndexType(), "strides*": IndexType(), "dst*": None}, results={"result*": None},
              text=f"(`offset` `[` $offset^ `]`)? `strides` `[` $strides `]` attr-dict {group('outs', 'dst')}{RESULT}",
              reads=("offset", "strides")),
)
"""The ops of the dialect in destination-passing style."""
