"""fixpipe: moves a matrix out of L0C and changes its layout, converts it and applies an activation (pipe FIX, Cube core)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from xdsl.dialects.builtin import AnyFloat, ArrayAttr, IntegerAttr, i1, i64
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
)
from xdsl.irdl.declarative_assembly_format import (
    AttributeVariable,
    CustomDirective,
    ParsingState,
    PrintingState,
    VariadicOperandVariable,
    irdl_custom_directive,
)
from xdsl.parser import Parser
from xdsl.printer import Printer

from tilelang_npu.dialects import hacc
from tilelang_npu.dialects.hivm.attributes import boolean, space_of
from tilelang_npu.dialects.hivm.enums import (
    FixpipeDMAModeAttr,
    FixpipeDualDstModeAttr,
    FixpipePreQuantModeAttr,
    FixpipePreReluModeAttr,
    FixpipeSubBlockAttr,
    UnitFlagAttr,
)
from tilelang_npu.dialects.hivm.scalar import follows_atomic_setting
from tilelang_npu.dialects.ir.declaration import OfClass, Operand, fail, operation, writes_older_text
from tilelang_npu.dialects.ir.destination_style import SHAPED, TENSOR, StructuredOp, destination_style, results_for
from tilelang_npu.target.chip_data import UnitFlagUse

__all__ = [
    "FixpipeOp", "unit_flag_use",
]


# -- unit flags: M hands blocks of L0C over to FIX one by one, without an event -------------------------------------------

UNIT_FLAGS = ArrayAttr.constr(UnitFlagAttr)


@irdl_custom_directive
class UnitFlag(CustomDirective):
    """Parses and prints the clauses of the unit-flag modes and conditions, in the syntax of AscendNPU-IR's branch master or of
    its release v1.0.0. Unit flags synchronise pipes M and FIX on single blocks of L0C.
    """

    mode: AttributeVariable
    condition: VariadicOperandVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        self.condition.set(state, ())
        if parser.parse_optional_keyword("unit_flag") is not None:
            with parser.in_square_brackets():
                self.mode.set(state, ArrayAttr([UnitFlagAttr(UnitFlagAttr.parse_parameter(parser))]))
                if parser.parse_optional_punctuation(",") is not None:
                    self.condition.set(state, (parser.parse_unresolved_operand(),))
            return
        if parser.parse_optional_keyword("unit_flag_mode") is not None:
            with parser.in_parens():
                self.mode.set(state, parser.parse_attribute())
        if parser.parse_optional_keyword("unit_flag_cond") is not None:
            with parser.in_parens():
                self.condition.parse(parser, state)

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        modes = self.mode.get(op)
        conditions = self.condition.get(op)
        if writes_older_text(printer):
            if isinstance(modes, ArrayAttr) and len(modes) == 1 and isinstance(flag := modes.data[0], UnitFlagAttr):
                printer.print_string(f" unit_flag[<{flag.data}>")
                for condition in conditions:
                    printer.print_string(", ")
                    printer.print_ssa_value(condition)
                printer.print_string("]")
            return
        if modes is not None:
            printer.print_string(" unit_flag_mode(")
            printer.print_attribute(modes)
            printer.print_string(")")
        if conditions:
            printer.print_string(" unit_flag_cond(")
            printer.print_list(conditions, printer.print_ssa_value)
            printer.print_string(")")


def unit_flags(op: FixpipeOp) -> None:
    """Verifies that an op has as many unit-flag conditions as modes, or one mode and no condition, or neither.

    Raises:
        VerifyException: the numbers do not match, or the group number is negative.
    """
    modes = len(op.unit_flag_mode) if op.unit_flag_mode is not None else 0
    conditions = len(op.unit_flag_cond)
    if op.unit_flag_mode is None:
        if conditions:
            fail("Cannot have unit-flag conditions without unit-flag modes.")
    elif conditions:
        if modes != conditions:
            fail("Number of unit-flag conditions should be equal to the number of unit-flag modes.")
    elif modes > 1:
        fail("Cannot have multiple unit-flag modes without having equal number of unit-flag conditions.")
    group = op.unit_flag_group_id
    if isinstance(group, IntegerAttr) and group.value.data < 0:
        fail(f"Invalid value for unit-flag group-id: {group.value.data}")


_USES: Mapping[str, UnitFlagUse] = {"ENABLED_WITHOUT_UPDATE": "keep", "ENABLED_WITH_UPDATE": "pass"}


def unit_flag_use(op: Operation) -> UnitFlagUse:
    """Returns how a product or a fixpipe uses unit flags, by its ``unit_flag_mode``."""
    modes = op.properties.get("unit_flag_mode", op.attributes.get("unit_flag_mode"))
    names = [mode.data for mode in modes if isinstance(mode, UnitFlagAttr)] if isinstance(modes, ArrayAttr) else []
    uses = {_USES.get(name, "") for name in names}
    if uses <= {""}:
        return ""
    if "unit_flag_mode" in op.attributes and uses == {"keep", "pass"}:
        return "either"
    conditional = len(names) > 1 or bool(getattr(op, "unit_flag_cond", ()))
    return "maybe" if conditional else next(iter(uses))


@operation(pipes=("FIX",), core="AIC", rules=(destination_style, unit_flags))
class FixpipeOp(StructuredOp):
    """Moves a matrix from L0C to GM, L1 or (950) UB."""

    name = "hivm.hir.fixpipe"
    src = operand_def(SHAPED)
    dst = operand_def(SHAPED)
    unit_flag_cond = var_operand_def(i1)
    dma_mode = prop_def(FixpipeDMAModeAttr, default_value=FixpipeDMAModeAttr("normal"))
    dual_dst_mode = opt_prop_def(FixpipeDualDstModeAttr)
    sub_block_idx = opt_prop_def(FixpipeSubBlockAttr)
    pre_quant = opt_prop_def(FixpipePreQuantModeAttr, default_value=FixpipePreQuantModeAttr("NO_QUANT"))
    pre_relu = opt_prop_def(FixpipePreReluModeAttr, default_value=FixpipePreReluModeAttr("NO_RELU"))
    channel_split = opt_prop_def(IntegerAttr.constr(i1), default_value=boolean(False))
    c0_pad_en = opt_prop_def(IntegerAttr.constr(i1), default_value=boolean(True))
    quant_scale = opt_operand_def(OfClass((AnyFloat,), "floating-point"))
    unit_flag_mode = opt_prop_def(UNIT_FLAGS)
    unit_flag_group_id = opt_prop_def(IntegerAttr.constr(i64))
    result_tensor = opt_result_def(TENSOR)
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    custom_directives = (UnitFlag,)
    assembly_format = (
        "attr-dict `ins` `(` $src `:` type($src) `)` `outs` `(` $dst `:` type($dst) `)`"
        " (`quant_scale` `=` $quant_scale^ `:` type($quant_scale))? (`dual_dst_mode` `=` $dual_dst_mode^)?"
        " custom<UnitFlag>($unit_flag_mode, $unit_flag_cond) (`->` type($result_tensor)^)?"
    )
    OLDER_UNITS: ClassVar[Mapping[str, tuple[str, Attribute]]] = {"enable_nz2nd": ("dma_mode", FixpipeDMAModeAttr("nz2nd"))}

    def __init__(self, src: Operand, dst: Operand, *, dma_mode: str = "normal", pre_quant: str | None = None,
                 pre_relu: str | None = None, quant_scale: Operand | None = None, dual_dst_mode: str | None = None,
                 sub_block: int | None = None, channel_split: bool = False, c0_pad: bool = True,
                 unit_flags: Sequence[str] = (), unit_flag_conditions: Sequence[Operand] = (),
                 unit_flag_group: int | None = None) -> None:
        """Builds the op.

        Args:
            src: the matrix in L0C, in fractal blocks.
            dst: the destination.
            dma_mode: the layout of the destination: ``nz2nd`` (rows), ``nz2dn`` (columns, 950) or ``normal`` (fractal blocks).
            pre_quant: the type conversion: ``F322F16``, ``F322BF16``, ``S322I8`` or ``QF322F32_PRE``.
            pre_relu: the activation function: ``NORMAL_RELU``, ``LEAKY_RELU`` or ``P_RELU``.
            quant_scale: the factor of the quantisation, a float.
            dual_dst_mode: how the matrix is split over the Vector cores of the block, ``ROW_SPLIT`` or ``COLUMN_SPLIT`` (950,
                to UB).
            sub_block: the index in the block of the Vector core to whose UB the op writes (950).
            channel_split: whether channels of f32 are split into blocks of 8 (950).
            c0_pad: whether an odd number of int8 blocks is padded.
            unit_flags: the unit-flag modes, such as ``ENABLED_WITH_UPDATE``, in which pipe M passes blocks of L0C to this op.
            unit_flag_conditions: one i1 per unit-flag mode, or none.
            unit_flag_group: the number of the unit-flag group, equal in this op and the mmadL1 that writes the matrix.
        """
        IRDLOperation.__init__(
            self, operands=[src, dst, list(unit_flag_conditions), quant_scale], result_types=[results_for(dst)],
            properties={
                "dma_mode": FixpipeDMAModeAttr(dma_mode),
                "dual_dst_mode": None if dual_dst_mode is None else FixpipeDualDstModeAttr(dual_dst_mode),
                "sub_block_idx": None if sub_block is None else FixpipeSubBlockAttr(f"sub_block_{sub_block}"),
                "pre_quant": None if pre_quant is None else FixpipePreQuantModeAttr(pre_quant),
                "pre_relu": None if pre_relu is None else FixpipePreReluModeAttr(pre_relu),
                "channel_split": boolean(True) if channel_split else None,
                "c0_pad_en": None if c0_pad else boolean(False),
                "unit_flag_mode": ArrayAttr([UnitFlagAttr(mode) for mode in unit_flags]) if unit_flags else None,
                "unit_flag_group_id": None if unit_flag_group is None else IntegerAttr(unit_flag_group, i64),
            })

    def verify_(self) -> None:
        features = hacc.features_of(self)
        if self.dma_mode.data == "nz2dn" and not features.fixpipe_columns:
            fail("NZ2DN is only supported on Ascend950!")
        if space_of(self.dst.type) == "ub" and not features.fixpipe_to_ub:
            fail("dst=UB is only supported on Ascend950!")
        if self.channel_split == boolean(True) and not features.fixpipe_channel_split:
            fail("The current hardware does not support channel split")
        if self.sub_block_idx is not None and self.vector_core() >= max(2, features.fixpipe_splits):
            fail(f"{self.sub_block_idx.data} is not a Vector core to which the fixpipe of this chip can write")
        if self.dual_dst_mode is None or self.dual_dst_mode.data == "NO_DUAL":
            return
        if self.sub_block_idx is not None:
            fail("sub_block_idx must not be set when dual_dst_mode is enabled!")
        if features.fixpipe_splits < 2:
            fail("dual_dst_mode is only supported on Ascend950!")
        source, target = space_of(self.src.type), space_of(self.dst.type)
        if source is not None and target is not None and (source, target) != ("cc", "ub"):
            fail("if dual_dst_mode is enabled, the data movement must be performed from L0C to UB!")

    def vector_core(self) -> int:
        """Returns the index in the block of the Vector core to whose UB the op writes; 0 if the op does not state it."""
        return 0 if self.sub_block_idx is None else int(self.sub_block_idx.data.removeprefix("sub_block_"))

    def reads_destination(self, target: SSAValue) -> bool:
        """Whether the op writes to GM and the last ``set_atomic`` before it makes it combine with the old values there."""
        return space_of(target.type) == "gm" and follows_atomic_setting(self)


OPERATIONS = (FixpipeOp,)
