"""Ops of the Cube core on operands in L1: matrix multiply-accumulate into L0C, and convolutions.

Each op is a macro, an op that executes several instructions: it moves its operands from L1 to L0A and L0B (pipe MTE1) and
multiplies them (pipe M), and it sets and waits for the events between these two pipes itself. The operands
``sync_related_args`` are the numbers of further events, which synchronise the macro with other ops, and a loop counter.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import ClassVar, NamedTuple

from xdsl.dialects.builtin import AnyFloat, ArrayAttr, DenseArrayBase, IndexType, IntegerAttr, UnitAttr, i1, i32, i64
from xdsl.ir import Operation, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    var_operand_def,
    var_result_def,
)

from tilelang_npu.dialects.hivm.enums import UnitFlagAttr
from tilelang_npu.dialects.hivm.fixpipe import UNIT_FLAGS, UnitFlag, unit_flags
from tilelang_npu.dialects.ir.constants import constant_value, is_known_true
from tilelang_npu.dialects.ir.declaration import SEGMENTS, OneOf, Operand, Rule, TableOp, define_op, fail, group, operation
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
from tilelang_npu.dialects.ir.mlir_dtypes import dtypes, element_type, mlir_type
from tilelang_npu.ops.scale_layouts import FORMATS
from tilelang_npu.target.chip_data import Pipe

__all__ = [
    "NO_EVENT", "SYNC_ARGUMENTS", "BatchMmadL1Op", "Conv1dL1Op", "Conv2dL1Op", "Conv3dL1Op", "MacroStep", "MmadL1Op",
    "MmadMxL1Op", "SharedEvent", "mx_format",
]

SYNC_ARGUMENTS = 7
"""The number of ``sync_related_args`` of mmadL1.

They are, in order: the events that the loads of A and of B wait for, the events that are set after the loads of A and of B, the
loop counter, and the events of the two halves of L0A and L0B."""
NO_EVENT = -1
"""The value of a ``sync_related_args`` operand that means no event or no counter."""


class SharedEvent(NamedTuple):
    """An event that synchronises a macro with other ops: the macro sets or waits for the event, and another op does the other.

    Attributes:
        place: the position of the event's number among the ``sync_related_args``.
        source: the pipe that sets the event.
        target: the pipe that waits for the event.
        sets: whether the macro sets the event; otherwise the macro waits for the event.
    """

    place: int
    source: Pipe
    target: Pipe
    sets: bool = False


class MacroStep(NamedTuple):
    """One of the steps that a macro executes in sequence.

    Attributes:
        role: the role (``Effect.role``) of the operand that the step reads or writes.
        waits: the event that the step can wait for before it begins; None if it waits for none.
        sets: the event that the step can set when it ends; None if it sets none.
    """

    role: str
    waits: SharedEvent | None = None
    sets: SharedEvent | None = None


_SYNC_GROUP = 7
"""The number of the group of operands of mmadL1 that are the ``sync_related_args``; a, b, init, m, k, n and c precede it."""
_LOADED = (SharedEvent(0, "MTE2", "MTE1"), SharedEvent(1, "MTE2", "MTE1"))
_READ = (SharedEvent(2, "MTE1", "MTE2", sets=True), SharedEvent(3, "MTE1", "MTE2", sets=True))
_HALVES = (SharedEvent(5, "M", "MTE1"), SharedEvent(6, "M", "MTE1"))


def _unit(*, present: bool) -> UnitAttr | None:
    return UnitAttr() if present else None


def _products(*names: str, bias: str) -> str:
    """Returns the format of the operands of a product: all values, an optional bias, and then all types."""
    values, types = (" `,` ".join(form.format(name) for name in names) for form in ("${}", "type(${})"))
    return f"`ins` `(` {values} (`,` ${bias}^)? `:` {types} (`,` type(${bias})^)? `)`"


_MMAD_FORMAT = (
    f"attr-dict {_products('a', 'b', 'init_condition', 'real_m', 'real_k', 'real_n', bias='per_channel_bias')}"
    f" {group('outs', 'c')}"
    " (`sync_related_args` `(` $sync_related_args^ `:` type($sync_related_args) `)`)?"
    " custom<UnitFlag>($unit_flag_mode, $unit_flag_cond) (`->` type($result_tensors)^)?"
)


class _MmadOp(StructuredOp):
    """Base of ``mmadL1`` and ``batchMmadL1``."""

    READS: ClassVar[tuple[str, ...]] = ("a", "b", "init_condition", "real_m", "real_k", "real_n", "per_channel_bias")
    WRITES: ClassVar[tuple[str, ...]] = ("c",)
    ROLES: ClassVar[Mapping[str, str]] = {"per_channel_bias": "bias"}
    COUNTER: ClassVar[int] = 4
    """The position of the loop counter among the ``sync_related_args``."""
    HALVES: ClassVar[tuple[SharedEvent, ...]] = _HALVES
    """The events of the two halves of L0, by which a load waits until the half is no longer being multiplied."""
    EVENTS: ClassVar[tuple[SharedEvent, ...]] = (*_LOADED, *_READ, *_HALVES)

    a = operand_def(TENSOR_OR_MEMREF)
    b = operand_def(TENSOR_OR_MEMREF)
    init_condition = operand_def(i1)
    real_m = operand_def(IndexType())
    real_k = operand_def(IndexType())
    real_n = operand_def(IndexType())
    c = operand_def(TENSOR_OR_MEMREF)
    sync_related_args = var_operand_def(i64)
    unit_flag_cond = var_operand_def(i1)
    per_channel_bias = opt_operand_def(TENSOR_OR_MEMREF)
    a_transpose = opt_prop_def(UnitAttr)
    b_transpose = opt_prop_def(UnitAttr)
    enable_HF32 = opt_prop_def(UnitAttr)
    enable_I4 = opt_prop_def(UnitAttr)
    unit_flag_mode = opt_prop_def(UNIT_FLAGS)
    unit_flag_group_id = opt_prop_def(IntegerAttr.constr(i64))
    result_tensors = var_result_def(TENSOR)
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    custom_directives = (UnitFlag,)
    assembly_format = _MMAD_FORMAT

    def __init__(self, a: Operand, b: Operand, c: Operand, init: Operand, m: Operand, k: Operand, n: Operand, *,
                 bias: Operand | None = None, a_transpose: bool = False, b_transpose: bool = False,
                 sync_related_args: Sequence[Operand] = (), hf32: bool = False, i4: bool = False,
                 unit_flags: Sequence[str] = (), unit_flag_conditions: Sequence[Operand] = (),
                 unit_flag_group: int | None = None) -> None:
        """Builds the op, which computes ``c = init ? a x b : c + a x b``.

        Args:
            a: left matrix in L1.
            b: right matrix in L1.
            c: accumulator in L0C.
            init: i1; whether the accumulator is cleared first.
            m: number of valid rows of the product (index).
            k: number of valid elements along the axis that is summed (index).
            n: number of valid columns of the product (index).
            bias: a row in L1 that is added to each row.
            a_transpose: whether the left matrix is stored as [K, M].
            b_transpose: whether the right matrix is stored as [N, K].
            sync_related_args: none, or the seven i64 values that ``SYNC_ARGUMENTS`` counts.
            hf32: whether f32 operands are rounded to hf32, which doubles the speed.
            i4: whether the i8 operands hold i4 data.
            unit_flags: the unit-flag modes, which say how pipe M passes blocks of the accumulator to pipe FIX without an event.
            unit_flag_conditions: one i1 per unit-flag mode, or none.
            unit_flag_group: the number of the unit-flag group, equal in this op and the fixpipe that reads the accumulator.
        """
        IRDLOperation.__init__(
            self, operands=[a, b, init, m, k, n, c, list(sync_related_args), list(unit_flag_conditions), bias],
            result_types=[results_for(c)],
            properties={
                "a_transpose": _unit(present=a_transpose), "b_transpose": _unit(present=b_transpose),
                "enable_HF32": _unit(present=hf32), "enable_I4": _unit(present=i4),
                "unit_flag_mode": ArrayAttr([UnitFlagAttr(mode) for mode in unit_flags]) if unit_flags else None,
                "unit_flag_group_id": None if unit_flag_group is None else IntegerAttr(unit_flag_group, i64),
            })

    def reads_destination(self, target: SSAValue) -> bool:
        """The product is added to the accumulator, unless the accumulator is known to be cleared first."""
        return not is_known_true(self.init_condition)

    def writes_partially(self) -> bool:
        """Whether the op may leave elements of the accumulator unwritten, because ``real_m x real_n`` does not cover it."""
        rows, columns = constant_value(self.real_m), constant_value(self.real_n)
        return rows is None or columns is None or rows * columns != prod(shape_of(self.c))

    def shared_events(self) -> Iterator[tuple[SharedEvent, SSAValue]]:
        """Yields the events in ``sync_related_args`` that the op sets or waits for, each with the value of its number."""
        given = self.sync_related_args
        for event in self.EVENTS if given else ():
            if constant_value(given[event.place]) != NO_EVENT:
                yield event, given[event.place]

    def set_sync_arguments(self, given: Mapping[int, SSAValue], none: SSAValue) -> None:
        """Replaces some of the ``sync_related_args`` and keeps the others.

        Args:
            given: the new values by position.
            none: the value for all other positions if the op has no ``sync_related_args`` yet.
        """
        had = self.sync_related_args
        made = [given.get(place, value) for place, value in enumerate(had or (none,) * SYNC_ARGUMENTS)]
        sizes = self.properties[SEGMENTS]
        assert isinstance(sizes, DenseArrayBase)
        counts = [int(size) for size in sizes.get_values()]
        start = sum(counts[:_SYNC_GROUP])
        self.operands = [*self.operands[:start], *made, *self.operands[start + counts[_SYNC_GROUP]:]]
        counts[_SYNC_GROUP] = len(made)
        self.properties[SEGMENTS] = DenseArrayBase.from_list(i32, counts)

    def verify_(self) -> None:
        if len(self.sync_related_args) not in (0, SYNC_ARGUMENTS):
            fail(f"sync_related_args should be empty or of size {SYNC_ARGUMENTS}")


@operation(pipes=("MTE1", "M"), core="AIC", rules=(destination_style, unit_flags))
class MmadL1Op(_MmadOp):
    """Multiplies two matrices in L1 and adds the product to an accumulator in L0C."""

    name = "hivm.hir.mmadL1"
    STEPS: ClassVar[tuple[MacroStep, ...]] = (
        MacroStep("a", _LOADED[0], _READ[0]), MacroStep("b", _LOADED[1], _READ[1]), MacroStep("bias"), MacroStep("c"))
    """The steps in order. Where K is split into several parts, the loads are repeated: the waits are before the first load,
    the sets after the last."""


@operation(pipes=("MTE1", "M"), core="AIC", rules=(destination_style, unit_flags))
class BatchMmadL1Op(_MmadOp):
    """Multiplies two batches of matrices in L1 and adds the products to accumulators in L0C; the first axis is the batch."""

    name = "hivm.hir.batchMmadL1"


class _ClearedProductOp(StructuredTableOp):
    """Base of the products that are declared as rows."""

    def reads_destination(self, target: SSAValue) -> bool:
        """The product is added to the accumulator, unless the accumulator is known to be cleared first."""
        return not is_known_true(self.init_condition)


# -- products of scaled floats -----------------------------------------------------------------------------------------

MX_MATRIX = frozenset(mlir_type(element) for element in dtypes("f8E4M3FN", "f8E5M2", "ui8", "i8"))
MX_SCALE = frozenset(mlir_type(element) for element in dtypes("ui8", "i8"))
MX_FORMAT = OneOf(frozenset(IntegerAttr(number, i32) for number in FORMATS.values()),
                  "the format of a matrix: 1, 2 or 3 of type i32")


def mx_format(number: int) -> IntegerAttr:
    """Returns the attribute that says what the bytes of an MX matrix hold (``ops.scale_layouts.FORMATS``)."""
    return IntegerAttr(number, i32)


_SYNC_ARGUMENTS = " " + group("sync_related_args?", "sync_related_args") + " (`->` type($result_tensors)^)?"


def _verify_mx_types(op: TableOp) -> None:
    """Verifies that matrices and scales have 8-bit elements, and that accumulator and result have float elements."""
    for index, allowed in enumerate((MX_MATRIX, MX_MATRIX, MX_SCALE, MX_SCALE)):
        found = element_type(op.operands[index].type)
        if found not in allowed:
            fail(f"operand #{index} must be Shaped Type of {' or '.join(sorted(map(str, allowed)))} values, "
                 f"but got {op.operands[index].type}")
    if not isinstance(element_type(op.c.type), AnyFloat):
        fail(f"operand 'c' must be Shaped Type of floating-point values, but got {op.c.type}")
    for type_ in op.result_types:
        if not isinstance(element_type(type_), AnyFloat):
            fail(f"result must be Shaped Type of floating-point values, but got {type_}")


_MX_INPUTS = ("a", "b", "scaleA", "scaleB", "init_condition", "real_m", "real_k", "real_n")
MmadMxL1Op = define_op(
    _ClearedProductOp, "hivm.hir.mmadmxL1",
    "Multiplies two matrices of scaled 8-bit (or 4-bit) floats in L1 and adds the product to an accumulator (950). The format"
    " of a matrix is 1 for fp8 e5m2, 2 for fp8 e4m3, 3 for fp4 e2m1.",
    operands={"a": SHAPED, "b": SHAPED, "scaleA": SHAPED, "scaleB": SHAPED, "init_condition": i1, "real_m": IndexType(),
              "real_k": IndexType(), "real_n": IndexType(), "c": SHAPED, "sync_related_args*": i64,
              "per_channel_bias?": TENSOR_OR_MEMREF},
    results={"result_tensors*": SHAPED},
    properties={"lhsFormat?": MX_FORMAT, "rhsFormat?": MX_FORMAT, "a_transpose?": UnitAttr, "b_transpose?": UnitAttr},
    text="attr-dict (`a_transpose` $a_transpose^)? (`b_transpose` $b_transpose^)?"
         f" {_products(*_MX_INPUTS, bias='per_channel_bias')} {group('outs', 'c')}" + _SYNC_ARGUMENTS,
    reads=(*_MX_INPUTS, "per_channel_bias"), writes=("c",), pipes=("MTE1", "M"), core="AIC",
    rules=(_verify_mx_types, destination_style))


# -- convolutions ------------------------------------------------------------------------------------------------------


def _padding_of_rank(rank: int) -> Rule:
    """Returns the rule that ``padding`` is one integer, or as many integers as ``rank``."""

    def check(op: Operation) -> None:
        padding = op.properties["padding"]
        if isinstance(padding, IntegerAttr):
            return
        if isinstance(padding, ArrayAttr) and len(padding) == rank and all(isinstance(p, IntegerAttr) for p in padding):
            return
        if isinstance(padding, DenseArrayBase) and padding.elt_type == i64 and len(padding) == rank:
            return
        fail(f"`padding` must be an integer scalar or a {rank}-element integer array")

    return check


def _convolution(axes: int, padding: object, *rules: Rule) -> type[_ClearedProductOp]:
    """Returns the class of the convolution along so many axes. ``sync_related_args`` are none or six i64 values."""
    words = {1: "one axis", 2: "two axes", 3: "three axes"}
    return define_op(
        _ClearedProductOp, f"hivm.hir.Conv{axes}dL1",
        f"Convolution along {words[axes]}: input and weights in L1, accumulator in L0C (950).",
        operands={"input": TENSOR_OR_MEMREF, "weight": TENSOR_OR_MEMREF, "bias?": TENSOR_OR_MEMREF, "init": TENSOR_OR_MEMREF,
                  "init_condition": i1, "sync_related_args*": i64},
        results={"result_tensors*": TENSOR}, properties={"padding": padding, "groups": IntegerAttr.constr(i32)},
        text=f"attr-dict {_products('input', 'weight', 'init_condition', bias='bias')} {group('outs', 'init')}"
             + _SYNC_ARGUMENTS,
        reads=("input", "weight", "init_condition", "bias"), writes=("init",), pipes=("MTE1", "M"), core="AIC",
        rules=(*rules, destination_style))


Conv1dL1Op = _convolution(1, IntegerAttr.constr(i32))
Conv2dL1Op = _convolution(2, None, _padding_of_rank(2))
Conv3dL1Op = _convolution(3, None, _padding_of_rank(3))

OPERATIONS = (MmadL1Op, BatchMmadL1Op, MmadMxL1Op, Conv1dL1Op, Conv2dL1Op, Conv3dL1Op)
