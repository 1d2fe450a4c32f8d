"""Ops of the Cube core on operands in L1: matrix multiply-accumulate into L0C and convolutions.

Each is a macro: it moves its operands from L1 to L0A and L0B (MTE1) and multiplies (M), with the events between them
inside. ``sync_related_args`` are the events and the loop counter it needs from outside.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import Any, ClassVar, NamedTuple

from xdsl.dialects.builtin import AnyFloat, ArrayAttr, DenseArrayBase, IndexType, IntegerAttr, UnitAttr, i1, i32, i64
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    var_operand_def,
    var_result_def,
)

from tilelang_npu.dialects.hivm.enums import UnitFlagAttr
from tilelang_npu.dialects.hivm.structured import (
    SHAPED,
    TENSOR,
    TENSOR_OR_MEMREF,
    StructuredOp,
    destination_style,
    dtypes,
    fail,
    mlir_type,
    results_for,
    shape_of,
)
from tilelang_npu.dialects.hivm.unit_flags import UNIT_FLAGS, UnitFlag, unit_flags
from tilelang_npu.dialects.ir.declaration import SEGMENTS, OneOf, element_type, operation
from tilelang_npu.dialects.ir.effects import constant, surely_true

Operand = SSAValue | Operation
SYNC_ARGUMENTS = 7
"""Number of ``sync_related_args`` of mmadL1: wait A, wait B, set A, set B, loop counter, two events of the L0 halves."""
NO_EVENT = -1
"""What stands in the ``sync_related_args`` for no event, and for no counter."""


class PassedEvent(NamedTuple):
    """An event from outside that a macro sets or waits for itself.

    Attributes:
        place: which of the ``sync_related_args`` is its number.
        source, target: the pipes.
        sets: whether the macro sets it; otherwise it waits for it.
    """

    place: int
    source: str
    target: str
    sets: bool = False


class MacroStep(NamedTuple):
    """A part of a macro's work, of those that it does one after the other.

    Attributes:
        role: the operand that it reads or writes (``Effect.role``).
        waits: the event that it can wait for first.
        sets: the event that it can set when done.
    """

    role: str
    waits: PassedEvent | None = None
    sets: PassedEvent | None = None


_SYNC = 7
"""Which of the operands of mmadL1 are the ``sync_related_args``: behind a, b, init, m, k, n and c."""
_LOADED = (PassedEvent(0, "MTE2", "MTE1"), PassedEvent(1, "MTE2", "MTE1"))
_READ = (PassedEvent(2, "MTE1", "MTE2", sets=True), PassedEvent(3, "MTE1", "MTE2", sets=True))
_HALVES = (PassedEvent(5, "M", "MTE1"), PassedEvent(6, "M", "MTE1"))


def _unit(*, present: bool) -> UnitAttr | None:
    return UnitAttr() if present else None


class _MmadOp(StructuredOp):
    """What mmadL1 and batchMmadL1 share."""

    READS: ClassVar[tuple[str, ...]] = ("a", "b", "init_condition", "real_m", "real_k", "real_n", "per_channel_bias")
    WRITES: ClassVar[tuple[str, ...]] = ("c",)
    ROLES: ClassVar[Mapping[str, str]] = {"per_channel_bias": "bias"}
    COUNTER: ClassVar[int] = 4
    """Which of the ``sync_related_args`` counts the iterations."""
    HALVES: ClassVar[tuple[PassedEvent, ...]] = _HALVES
    """The events that keep its loads off a half of L0 that is multiplied: it waits for one, and sets it again."""
    EVENTS: ClassVar[tuple[PassedEvent, ...]] = (*_LOADED, *_READ, *_HALVES)

    def __init__(self, a: Operand, b: Operand, c: Operand, init: Operand, m: Operand, k: Operand, n: Operand, *,
                 bias: Operand | None = None, a_transpose: bool = False, b_transpose: bool = False,
                 sync_related_args: Sequence[Operand] = (), hf32: bool = False, i4: bool = False,
                 unit_flags: Sequence[str] = (), unit_flag_conditions: Sequence[Operand] = (),
                 unit_flag_group: int | None = None) -> None:
        """Make ``c = init ? a x b : c + a x b``.

        Args:
            a: left matrix in L1.
            b: right matrix in L1.
            c: accumulator in L0C.
            init: i1; the accumulator is cleared first where it holds.
            m: rows of the product that are data (index).
            k: length of the sums that is data (index).
            n: columns of the product that are data (index).
            bias: row to add to each row, in L1.
            a_transpose: the left matrix is stored as [K, M].
            b_transpose: the right matrix is stored as [N, K].
            sync_related_args: none, or the seven i64 values of the module's description.
            hf32: round f32 operands to hf32, which doubles the speed.
            i4: the i8 operands were i4.
            unit_flags: hand-over modes of the accumulator's blocks.
            unit_flag_conditions: one i1 per mode.
            unit_flag_group: number that pairs this op with a fixpipe.
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

    def reads_back(self, target: SSAValue) -> bool:
        """Products are added to what is there, unless it is surely cleared."""
        (init,) = self._held(("init_condition",))
        return not surely_true(init)

    def keeps(self) -> bool:
        """Rows and columns of the accumulator that are no data stay what they were."""
        rows, columns = map(constant, self._held(("real_m", "real_n")))
        return rows is None or columns is None or rows * columns != prod(shape_of(*self.outs()))

    def passed(self) -> Iterator[tuple[PassedEvent, SSAValue]]:
        """The events from outside that it sets and waits for, each with its number."""
        given = self._held(("sync_related_args",))
        for event in self.EVENTS if given else ():
            if constant(given[event.place]) != NO_EVENT:
                yield event, given[event.place]

    def pass_on(self, given: Mapping[int, SSAValue], none: SSAValue) -> None:
        """Give it events and a counter, by their place in the ``sync_related_args``; what it has of others it keeps.

        Args:
            given: the numbers.
            none: the number of no event, where it has had nothing yet.
        """
        had = self._held(("sync_related_args",))
        made = [given.get(place, value) for place, value in enumerate(had or (none,) * SYNC_ARGUMENTS)]
        sizes = self.properties[SEGMENTS]
        assert isinstance(sizes, DenseArrayBase)
        counts = [int(size) for size in sizes.get_values()]
        start = sum(counts[:_SYNC])
        self.operands = [*self.operands[:start], *made, *self.operands[start + counts[_SYNC]:]]
        counts[_SYNC] = len(made)
        self.properties[SEGMENTS] = DenseArrayBase.from_list(i32, counts)

    def verify_(self) -> None:
        given = self._held(("sync_related_args",))
        if len(given) not in (0, SYNC_ARGUMENTS):
            fail(f"sync_related_args should be empty or of size {SYNC_ARGUMENTS}")


_MMAD_FORMAT = (
    "attr-dict `ins` `(` $a `,` $b `,` $init_condition `,` $real_m `,` $real_k `,` $real_n (`,` $per_channel_bias^)? `:`"
    " type($a) `,` type($b) `,` type($init_condition) `,` type($real_m) `,` type($real_k) `,` type($real_n)"
    " (`,` type($per_channel_bias)^)? `)` `outs` `(` $c `:` type($c) `)`"
    " (`sync_related_args` `(` $sync_related_args^ `:` type($sync_related_args) `)`)?"
    " custom<UnitFlag>($unit_flag_mode, $unit_flag_cond) (`->` type($result_tensors)^)?"
)


@operation(pipes=("MTE1", "M"), core="AIC", rules=(destination_style, unit_flags))
class MmadL1Op(_MmadOp):
    """Multiply two matrices in L1 and add the product to an accumulator in L0C."""

    name = "hivm.hir.mmadL1"
    STEPS: ClassVar[tuple[MacroStep, ...]] = (
        MacroStep("a", _LOADED[0], _READ[0]), MacroStep("b", _LOADED[1], _READ[1]), MacroStep("bias"), MacroStep("c"))
    """What it does in turn. Where K has several parts the loads are repeated: the waits are in front of the first, the sets
    behind the last."""
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


@operation(pipes=("MTE1", "M"), core="AIC", rules=(destination_style, unit_flags))
class BatchMmadL1Op(_MmadOp):
    """As mmadL1 for each matrix of a batch (first axis)."""

    name = "hivm.hir.batchMmadL1"
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


MX_MATRIX = frozenset(mlir_type(element) for element in dtypes("f8E4M3FN", "f8E5M2", "ui8", "i8"))
MX_SCALE = frozenset(mlir_type(element) for element in dtypes("ui8", "i8"))
MX_FORMAT = OneOf(frozenset(IntegerAttr(number, i32) for number in (1, 2, 3)), "the format of a matrix: 1, 2 or 3 of type i32")


@operation(pipes=("MTE1", "M"), core="AIC", rules=(destination_style,),
           reads=("a", "b", "scaleA", "scaleB", "init_condition", "real_m", "real_k", "real_n",
                  "per_channel_bias"),
           writes=("c",))
class MmadMxL1Op(StructuredOp):
    """Multiply two matrices of scaled 8-bit (or 4-bit) floats in L1 and add the product to an accumulator (950)."""

    name = "hivm.hir.mmadmxL1"
    a = operand_def(SHAPED)
    b = operand_def(SHAPED)
    scaleA = operand_def(SHAPED)
    scaleB = operand_def(SHAPED)
    init_condition = operand_def(i1)
    real_m = operand_def(IndexType())
    real_k = operand_def(IndexType())
    real_n = operand_def(IndexType())
    c = operand_def(SHAPED)
    sync_related_args = var_operand_def(i64)
    per_channel_bias = opt_operand_def(TENSOR_OR_MEMREF)
    lhsFormat = opt_prop_def(MX_FORMAT)
    rhsFormat = opt_prop_def(MX_FORMAT)
    a_transpose = opt_prop_def(UnitAttr)
    b_transpose = opt_prop_def(UnitAttr)
    result_tensors = var_result_def(SHAPED)
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    assembly_format = (
        "attr-dict (`a_transpose` $a_transpose^)? (`b_transpose` $b_transpose^)? `ins` `(` $a `,` $b `,` $scaleA `,` $scaleB"
        " `,` $init_condition `,` $real_m `,` $real_k `,` $real_n (`,` $per_channel_bias^)? `:` type($a) `,` type($b) `,`"
        " type($scaleA) `,` type($scaleB) `,` type($init_condition) `,` type($real_m) `,` type($real_k) `,` type($real_n)"
        " (`,` type($per_channel_bias)^)? `)` `outs` `(` $c `:` type($c) `)`"
        " (`sync_related_args` `(` $sync_related_args^ `:` type($sync_related_args) `)`)? (`->` type($result_tensors)^)?"
    )

    def __init__(self, a: Operand, b: Operand, scale_a: Operand, scale_b: Operand, c: Operand, init: Operand, m: Operand,
                 k: Operand, n: Operand, *, bias: Operand | None = None, a_transpose: bool = False,
                 b_transpose: bool = False, lhs_format: int | None = None, rhs_format: int | None = None,
                 sync_related_args: Sequence[Operand] = ()) -> None:
        """Make the op; see :class:`MmadL1Op`. Formats: 1 fp8 e5m2, 2 fp8 e4m3, 3 fp4 e2m1."""
        IRDLOperation.__init__(
            self, operands=[a, b, scale_a, scale_b, init, m, k, n, c, list(sync_related_args), bias],
            result_types=[results_for(c)],
            properties={
                "lhsFormat": None if lhs_format is None else IntegerAttr(lhs_format, i32),
                "rhsFormat": None if rhs_format is None else IntegerAttr(rhs_format, i32),
                "a_transpose": _unit(present=a_transpose), "b_transpose": _unit(present=b_transpose)})

    def reads_back(self, target: SSAValue) -> bool:
        """Products are added to what is there, unless it is surely cleared."""
        (init,) = self._held(("init_condition",))
        return not surely_true(init)

    def verify_(self) -> None:
        for index, allowed in enumerate((MX_MATRIX, MX_MATRIX, MX_SCALE, MX_SCALE)):
            found = element_type(self.operands[index].type)
            if found not in allowed:
                fail(f"operand #{index} must be Shaped Type of {' or '.join(sorted(map(str, allowed)))} values, "
                     f"but got {self.operands[index].type}")
        if not isinstance(element_type(self.c.type), AnyFloat):
            fail(f"operand 'c' must be Shaped Type of floating-point values, but got {self.c.type}")
        for type_ in self.result_types:
            if not isinstance(element_type(type_), AnyFloat):
                fail(f"result must be Shaped Type of floating-point values, but got {type_}")


class _ConvOp(StructuredOp):
    """What the convolutions share: input and weight in L1, accumulator in L0C."""

    READS: ClassVar[tuple[str, ...]] = ("input", "weight", "init_condition", "bias")
    WRITES: ClassVar[tuple[str, ...]] = ("init",)

    def __init__(self, data: Operand, weight: Operand, out: Operand, init: Operand, *, padding: int | Sequence[int] = 0,
                 groups: int = 1, bias: Operand | None = None, sync_related_args: Sequence[Operand] = ()) -> None:
        """Make the convolution.

        Args:
            data: input in L1.
            weight: weights in L1.
            out: accumulator in L0C.
            init: i1; the accumulator is cleared first where it holds.
            padding: zeros at each border, one number or one per axis.
            groups: number of groups of channels.
            bias: one number per output channel, in L1.
            sync_related_args: events and loop counter from outside, none or six i64 values.
        """
        pads: Attribute = IntegerAttr(padding, i32) if isinstance(padding, int) else ArrayAttr(
            [IntegerAttr(number, i64) for number in padding])
        IRDLOperation.__init__(self, operands=[data, weight, bias, out, init, list(sync_related_args)],
                               result_types=[results_for(out)],
                               properties={"padding": pads, "groups": IntegerAttr(groups, i32)})

    def reads_back(self, target: SSAValue) -> bool:
        """Products are added to what is there, unless it is surely cleared."""
        (init,) = self._held(("init_condition",))
        return not surely_true(init)



def _padding_of_rank(rank: int) -> Any:
    def check(op: Any) -> None:
        padding = op.properties["padding"]
        if isinstance(padding, IntegerAttr):
            return
        if isinstance(padding, ArrayAttr) and len(padding) == rank and all(isinstance(p, IntegerAttr) for p in padding):
            return
        if isinstance(padding, DenseArrayBase) and padding.elt_type == i64 and len(padding) == rank:
            return
        fail(f"`padding` must be an integer scalar or a {rank}-element integer array")

    return check


_CONV_FORMAT = (
    "attr-dict `ins` `(` $input `,` $weight `,` $init_condition (`,` $bias^)? `:` type($input) `,` type($weight) `,`"
    " type($init_condition) (`,` type($bias)^)? `)` `outs` `(` $init `:` type($init) `)`"
    " (`sync_related_args` `(` $sync_related_args^ `:` type($sync_related_args) `)`)? (`->` type($result_tensors)^)?"
)


@operation(pipes=("MTE1", "M"), core="AIC", rules=(destination_style,))
class Conv1dL1Op(_ConvOp):
    """Convolution along one axis (950)."""

    name = "hivm.hir.Conv1dL1"
    input = operand_def(TENSOR_OR_MEMREF)
    weight = operand_def(TENSOR_OR_MEMREF)
    bias = opt_operand_def(TENSOR_OR_MEMREF)
    init = operand_def(TENSOR_OR_MEMREF)
    init_condition = operand_def(i1)
    sync_related_args = var_operand_def(i64)
    padding = prop_def(IntegerAttr.constr(i32))
    groups = prop_def(IntegerAttr.constr(i32))
    result_tensors = var_result_def(TENSOR)
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    assembly_format = _CONV_FORMAT


@operation(pipes=("MTE1", "M"), core="AIC", rules=(_padding_of_rank(2), destination_style))
class Conv2dL1Op(_ConvOp):
    """Convolution along two axes (950)."""

    name = "hivm.hir.Conv2dL1"
    input = operand_def(TENSOR_OR_MEMREF)
    weight = operand_def(TENSOR_OR_MEMREF)
    bias = opt_operand_def(TENSOR_OR_MEMREF)
    init = operand_def(TENSOR_OR_MEMREF)
    init_condition = operand_def(i1)
    sync_related_args = var_operand_def(i64)
    padding = prop_def()
    groups = prop_def(IntegerAttr.constr(i32))
    result_tensors = var_result_def(TENSOR)
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    assembly_format = _CONV_FORMAT


@operation(pipes=("MTE1", "M"), core="AIC", rules=(_padding_of_rank(3), destination_style))
class Conv3dL1Op(_ConvOp):
    """Convolution along three axes (950)."""

    name = "hivm.hir.Conv3dL1"
    input = operand_def(TENSOR_OR_MEMREF)
    weight = operand_def(TENSOR_OR_MEMREF)
    bias = opt_operand_def(TENSOR_OR_MEMREF)
    init = operand_def(TENSOR_OR_MEMREF)
    init_condition = operand_def(i1)
    sync_related_args = var_operand_def(i64)
    padding = prop_def()
    groups = prop_def(IntegerAttr.constr(i32))
    result_tensors = var_result_def(TENSOR)
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    assembly_format = _CONV_FORMAT


OPERATIONS = (MmadL1Op, BatchMmadL1Op, MmadMxL1Op, Conv1dL1Op, Conv2dL1Op, Conv3dL1Op)
