"""Custom ops: calls of device functions that the user provides, with inputs, outputs and temporary buffers.

The text is ``hivm.hir.custom {attributes} "name" ins(..) outs(..) tmps(..) -> results``. A ``custom_macro`` uses several pipes
and may have events as operands. The attributes must state the core and the pipe that execute the function, and the symbol that
implements it, unless the name is one of the toolchain's ``__builtin_...`` functions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import ClassVar

from typing_extensions import Self
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IntegerAttr, MemRefType, StringAttr, TensorType, UnitAttr, i64
from xdsl.ir import Attribute, SSAValue, TypeAttribute
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    opt_prop_def,
    prop_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer

from tilelang_npu.dialects import hacc
from tilelang_npu.dialects.hivm.attributes import SyncEventSlotAttr
from tilelang_npu.dialects.hivm.enums import CORE_OF_TYPE, CoreType, CoreTypeAttr, PipeAttr, VFModeAttr
from tilelang_npu.dialects.ir.constants import constant_value, is_known_true
from tilelang_npu.dialects.ir.declaration import Operand, fail, operation
from tilelang_npu.dialects.ir.destination_style import StructuredOp, destination_style, results_for, shape_of
from tilelang_npu.dialects.text.writer import TextPrinter
from tilelang_npu.ops import Composite, Structured, operation_of_symbol
from tilelang_npu.target.chip_data import OpCore, PipeName

__all__ = [
    "BUILTINS", "LOAD_PATCHES", "MMA_MX", "CustomMacroOp", "CustomOp",
]

BUILTINS = frozenset({"__builtin_gather_load", "__builtin_index_select", "__builtin_indirect_atomic", "__builtin_histogram"})
"""The functions of the toolchain's own device library. All run on PIPE_V of the Vector core in SIMT mode."""
MMA = "mma"
"""The symbol of the custom op that multiplies a matrix in L0A by one in L0B and accumulates in L0C."""
MMA_MX = "mma_mx"
"""The symbol of the custom op that multiplies MX matrices in L0A and L0B, with their scales in L1."""
LOAD_PATCHES = "load_l0a_patches"
"""The symbol of the custom op that loads patches of an image from L1 to L0A, as AscendC's LoadData with LoadData3DParamsV2."""
_UNASSIGNED = PipeAttr("UNASSIGNED")
_BUILTIN_FACTS = {"hivm.tcore_type": (CoreTypeAttr("VECTOR"), "core type"), "hivm.vf_mode": (VFModeAttr("SIMT"), "vf mode"),
                  "hivm.pipe": (PipeAttr("V"), "pipe")}


class _CustomOp(StructuredOp):
    """Base of ``custom`` and ``custom_macro``, with their memory effects, their text and their rules."""

    READS: ClassVar[tuple[str, ...]] = ("inputs",)
    WRITES: ClassVar[tuple[str, ...]] = ("outputs",)
    ROLES: ClassVar[Mapping[str, str]] = {"inputs": "src", "outputs": "dst"}
    PIPE_ATTRIBUTES: ClassVar[Mapping[str, str]]
    HAS_SYNC_ARGUMENTS: ClassVar[bool]
    BUILTINS: ClassVar[frozenset[str]] = frozenset()
    """The names of the toolchain's functions for which the op need not state core, pipe and symbol."""

    @property
    def function(self) -> str:
        """The name of the called function, which the text of the op has in quotes."""
        name = self.properties["name"]
        assert isinstance(name, StringAttr)
        return name.data

    @property
    def symbol(self) -> str:
        """The symbol of the device function that implements the op; empty if the op states none."""
        symbol = self.attributes.get("symbol")
        return symbol.data if isinstance(symbol, StringAttr) else ""

    def pipes(self) -> tuple[PipeName, ...]:
        """Returns short names of the pipes that the op's attributes state."""
        named = (self._pipe(attribute) for attribute in self.PIPE_ATTRIBUTES)
        return tuple(pipe.short for pipe in named if pipe is not None)

    def _pipe(self, attribute: str) -> PipeAttr | None:
        pipe = self.attributes.get(attribute)
        return pipe if isinstance(pipe, PipeAttr) and pipe != _UNASSIGNED else None

    def core(self) -> OpCore:
        """Returns the core that the op's attributes state: ``AIC`` or ``AIV``; ``either`` if they state none."""
        core = self.attributes.get("hivm.tcore_type")
        return CORE_OF_TYPE.get(core.short, "either") if isinstance(core, CoreTypeAttr) else "either"

    @property
    def _is_product(self) -> bool:
        """Whether the op is a matrix product: its inputs are two matrices, an i1 to clear the accumulator, three sizes, and, if
        only run time knows it, the unit flag: 2 or 3. MX matrices are followed by their scales.
        """
        return (self.symbol == MMA and len(self.ins()) in (6, 7)) or (self.symbol == MMA_MX and len(self.ins()) == 8)

    @property
    def _sizes_at(self) -> int:
        """The position of the first size of a matrix product among its inputs, after the i1 to clear the accumulator."""
        return 5 if self.symbol == MMA_MX else 3

    def role(self, field: str, index: int) -> str:
        """Returns ``a``, ``b`` or ``c`` for the matrices of a matrix product, as for ``mmadL1``, else the usual role."""
        if self._is_product and field != "temp_buffers":
            return "c" if field == "outputs" else ("a", "b", "scaleA", "scaleB")[index]
        return super().role(field, index)

    def reads_destination(self, target: SSAValue) -> bool:
        """Whether the destination is also an input, or the function adds to the old values of the destination.

        A matrix product does the latter, unless the accumulator is known to be cleared first. Another function does so if the
        field ``accumulates`` of its entry in the op table is set.
        """
        entry = operation_of_symbol(self.symbol)
        return (target in self.ins() or (self._is_product and not is_known_true(self.ins()[self._sizes_at - 1]))
                or (isinstance(entry, Composite) and entry.accumulates))

    def writes_partially(self) -> bool:
        """Whether the function may leave elements of its outputs unwritten.

        For a matrix product that depends on the stated numbers of valid rows and columns, for another function on the field
        ``partial`` of its entry in the op table.
        """
        if self._is_product:
            first = self._sizes_at
            rows, columns = constant_value(self.ins()[first]), constant_value(self.ins()[first + 2])
            return rows is None or columns is None or rows * columns != prod(shape_of(self.outs()[0]))
        entry = operation_of_symbol(self.symbol)
        return isinstance(entry, Structured) and entry.partial

    def has_side_effects(self) -> bool:
        """Whether the function may have effects other than on its operands.

        It may, unless the op has ``no_side_effect`` or its symbol is that of an entry of the op table.
        """
        if "no_side_effect" in self.properties:
            return False
        entry = operation_of_symbol(self.symbol)
        return not (isinstance(entry, Structured | Composite) or (entry is not None and entry.is_custom))

    # -- text --------------------------------------------------------------------------------------------------------

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parses the op in its custom assembly form."""
        given: dict[str, Attribute] = {}
        if parser.parse_optional_punctuation("<") is not None:
            given |= parser.parse_optional_attr_dict()
            parser.parse_punctuation(">")
        given |= parser.parse_optional_attr_dict()
        properties: dict[str, Attribute] = {"name": StringAttr(parser.parse_str_literal())}
        if "no_side_effect" in given:
            properties["no_side_effect"] = given.pop("no_side_effect")
        groups: list[list[SSAValue]] = []
        for keyword in ("ins", "outs", "tmps"):
            values, attributes = _parse_group(parser, keyword)
            groups.append(values)
            if keyword == "ins" and any(entry.data for entry in attributes):
                given["arg_attrs"] = _merge_input_attributes(attributes, given.get("arg_attrs"))
        results = _parse_results(parser)
        if cls.HAS_SYNC_ARGUMENTS:
            groups.append(_parse_group(parser, "sync_related_args")[0])
        return cls.build(operands=groups, result_types=[results], properties=properties, attributes=given)

    def print(self, printer: Printer) -> None:
        """Prints the op in its custom assembly form."""
        per_input = self.attributes.get("arg_attrs")
        inline = per_input if isinstance(per_input, ArrayAttr) and any(
            isinstance(entry, DictionaryAttr) and "inplace_outs" in entry.data for entry in per_input) else None
        shown = dict(self.attributes)
        if "no_side_effect" in self.properties:
            shown["no_side_effect"] = UnitAttr()
        printer.print_op_attributes(shown, reserved_attr_names=("arg_attrs",) if inline is not None else ())
        if inline is not None and isinstance(printer, TextPrinter):
            printer.shown("arg_attrs")
        printer.print_string(" ")
        printer.print_string_literal(self.function)
        for keyword, field in (("ins", "inputs"), ("outs", "outputs"), ("tmps", "temp_buffers")):
            _print_group(printer, keyword, getattr(self, field), inline if keyword == "ins" else None)
        if self.results:
            printer.print_string(" -> ")
            if len(self.results) > 1:
                printer.print_string("(")
            printer.print_list(self.result_types, printer.print_attribute)
            if len(self.results) > 1:
                printer.print_string(")")
        if self.HAS_SYNC_ARGUMENTS:
            _print_group(printer, "sync_related_args", self.operands_of(("sync_related_args",)), None)

    # -- rules -------------------------------------------------------------------------------------------------------

    def verify_(self) -> None:
        self._verify_in_place()
        if self.function in self.BUILTINS:
            for attribute, (wanted, words) in _BUILTIN_FACTS.items():
                if self.attributes.get(attribute, wanted) not in (wanted, _UNASSIGNED):
                    fail(f"Specified {words} conflict with {self.function}'s {words}.")
            return
        self._verify_extra_buffers()
        core = self.attributes.get("hivm.tcore_type")
        if not isinstance(core, CoreTypeAttr):
            fail("Missing core type information")
        if (core != CoreTypeAttr("CUBE") and hacc.features_of(self).vector_modes
                and not isinstance(self.attributes.get("hivm.vf_mode"), VFModeAttr)):
            fail("Missing vf mode information")
        for attribute, words in self.PIPE_ATTRIBUTES.items():
            if self._pipe(attribute) is None:
                fail(f"Missing {words} information")
        if not self.symbol:
            fail("Missing implementation function name")

    def _verify_extra_buffers(self) -> None:
        types, sizes = (self.attributes.get(name) for name in ("extra_buffers_types", "extra_buffers_sizes"))
        if types is None and sizes is None:
            return
        if not isinstance(types, ArrayAttr) or not isinstance(sizes, ArrayAttr):
            fail("Either extra buffers' types or sizes missing")
            return
        if len(types) != len(sizes):
            fail("Extra buffers' types and sizes mismatch")
        if any(not isinstance(type_, TypeAttribute) for type_ in types):
            fail("Extra buffers' types must be an array of type attributes")
        for size in sizes:
            if not isinstance(size, IntegerAttr):
                fail("Extra buffers' sizes must be an array of integer attributes")
            elif size.value.data < 0:
                fail("Extra buffer size must be non-negative")

    def _verify_in_place(self) -> None:
        per_input = self.attributes.get("arg_attrs")
        if not isinstance(per_input, ArrayAttr):
            return
        used: set[int] = set()
        outs = self.outs()
        for given, entry in zip(self.ins(), per_input, strict=False):
            place = entry.data.get("inplace_outs") if isinstance(entry, DictionaryAttr) else None
            if place is None:
                continue
            if not isinstance(place, IntegerAttr):
                fail("inplace_outs must be an integer attribute")
                return
            number = place.value.data
            if not 0 <= number < len(outs):
                fail("inplace_outs must be a valid outs operand index")
            if number in used:
                fail("inplace_outs cannot map multiple ins operands to the same outs operand")
            used.add(number)
            if not all(isinstance(value.type, (TensorType, MemRefType)) for value in (given, outs[number])):
                fail("inplace_outs requires mapped ins and outs operands to be ranked tensors or memrefs")
            if given.type != outs[number].type:
                fail("inplace_outs requires mapped ins and outs operands to have identical ranked tensor or memref types")
            if given is not outs[number]:
                fail("inplace_outs requires each mapped ins operand to be the same SSA value as its mapped outs operand")


def _parse_group(parser: Parser, keyword: str) -> tuple[list[SSAValue], list[DictionaryAttr]]:
    """Parses ``ins(%a, %b : T {..}, U)``, if present; returns the values and the attributes after each type."""
    if parser.parse_optional_keyword(keyword) is None:
        return [], []
    operands: list[UnresolvedOperand] = []
    values: list[SSAValue] = []
    attributes: list[DictionaryAttr] = []
    with parser.in_parens():
        operands = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_unresolved_operand)
        parser.parse_punctuation(":")
        for place, operand in enumerate(operands):
            if place:
                parser.parse_punctuation(",")
            values.append(parser.resolve_operand(operand, parser.parse_type()))
            attributes.append(DictionaryAttr(parser.parse_optional_attr_dict()))
    return values, attributes


def _parse_results(parser: Parser) -> list[Attribute]:
    if parser.parse_optional_punctuation("->") is None:
        return []
    listed = parser.parse_optional_comma_separated_list(parser.Delimiter.PAREN, parser.parse_type)
    return [*listed] if listed is not None else [parser.parse_type()]


def _merge_input_attributes(inline: Sequence[DictionaryAttr], stated: Attribute | None) -> ArrayAttr[DictionaryAttr]:
    """Returns the attributes of the inputs: those in ``arg_attrs``, and over them those after the types."""
    before = list(stated) if isinstance(stated, ArrayAttr) else []
    merged = []
    for place, entry in enumerate(inline):
        base = before[place].data if place < len(before) and isinstance(before[place], DictionaryAttr) else {}
        merged.append(DictionaryAttr({**base, **entry.data}))
    return ArrayAttr(merged)


def _print_group(printer: Printer, keyword: str, values: Sequence[SSAValue], per_value: ArrayAttr[Attribute] | None) -> None:
    if not values:
        return
    printer.print_string(f" {keyword}(")
    printer.print_list(values, printer.print_ssa_value)
    printer.print_string(" : ")
    for place, value in enumerate(values):
        if place:
            printer.print_string(", ")
        printer.print_attribute(value.type)
        entry = per_value.data[place] if per_value is not None and place < len(per_value) else None
        if isinstance(entry, DictionaryAttr) and entry.data:
            printer.print_string(" ")
            printer.print_attribute(entry)
    printer.print_string(")")


def _attributes(core: CoreType | None, pipes: Mapping[str, PipeName | None], symbol: str | None, vf_mode: str | None,
                extra: Mapping[str, Attribute]) -> dict[str, Attribute | None]:
    made: dict[str, Attribute | None] = {
        "hivm.tcore_type": None if core is None else CoreTypeAttr(core),
        **{name: None if pipe is None else PipeAttr(pipe) for name, pipe in pipes.items()},
        "hivm.vf_mode": None if vf_mode is None else VFModeAttr(vf_mode),
        "symbol": None if symbol is None else StringAttr(symbol)}
    return made | dict(extra)


@operation(rules=(destination_style,), scratch=("temp_buffers",))
class CustomOp(_CustomOp):
    """Calls a device function that the user provides and that one pipe executes."""

    name = "hivm.hir.custom"
    function_name = prop_def(StringAttr, prop_name="name")
    no_side_effect = opt_prop_def(UnitAttr)
    inputs = var_operand_def()
    outputs = var_operand_def()
    temp_buffers = var_operand_def()
    res = var_result_def()
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    PIPE_ATTRIBUTES: ClassVar[Mapping[str, str]] = {"hivm.pipe": "pipe"}
    HAS_SYNC_ARGUMENTS: ClassVar[bool] = False
    BUILTINS: ClassVar[frozenset[str]] = BUILTINS

    def __init__(self, function: str, inputs: Sequence[Operand] = (), outputs: Sequence[Operand] = (), *,
                 core: CoreType | None = None, pipe: PipeName | None = None, symbol: str | None = None,
                 vf_mode: str | None = None, temp_buffers: Sequence[Operand] = (), no_side_effect: bool = False,
                 attributes: Mapping[str, Attribute] | None = None) -> None:
        """Builds the op.

        Args:
            function: the name of the called function.
            inputs: the values that the function reads.
            outputs: the buffers or tensors that the function writes; the op has a result for each tensor.
            core: the core that executes the function: ``CUBE`` or ``VECTOR``.
            pipe: the short name of the pipe that executes the function.
            symbol: the symbol of the device function.
            vf_mode: how the function runs on a 950: ``SIMD``, ``SIMT`` or ``MIX``.
            temp_buffers: temporary buffers of the function.
            no_side_effect: whether the function has no effects other than on its outputs.
            attributes: further attributes.
        """
        IRDLOperation.__init__(
            self, operands=[list(inputs), list(outputs), list(temp_buffers)], result_types=[results_for(*outputs)],
            properties={"name": StringAttr(function), "no_side_effect": UnitAttr() if no_side_effect else None},
            attributes=_attributes(core, {"hivm.pipe": pipe}, symbol, vf_mode, attributes or {}))


def _verify_sync_slots(op: CustomMacroOp) -> None:
    """Verifies that every event slot has a number or none has, and that no two slots reserve the same event."""
    stated = op.attributes.get("sync_event_slots", ArrayAttr(()))
    if not isinstance(stated, ArrayAttr):
        fail(f"sync_event_slots must be an array, but got {stated}")
    slots = [slot for slot in stated if isinstance(slot, SyncEventSlotAttr)]
    given = len(op.sync_related_args)
    if given not in (0, len(slots)):
        fail(f"sync_related_args should be of size {len(slots)}" if slots else "sync_related_args should be empty")
    reserved: set[tuple[str | None, str | None, str]] = set()
    for slot in slots:
        set_pipe, wait_pipe, mode, event = slot.data
        if mode != "internal" and (set_pipe is None or wait_pipe is None):
            fail("sync_event_slot requires set_pipe and wait_pipe for `wait` and `set` macro_sync")
        if event is None:
            continue
        key = (None, None, event) if mode == "internal" else (set_pipe, wait_pipe, event)
        if key in reserved:
            fail("duplicate user-specified sync event id on internal slot" if mode == "internal"
                 else "duplicate user-specified sync event id on the same pipe pair")
        reserved.add(key)


@operation(rules=(destination_style, _verify_sync_slots), scratch=("temp_buffers",))
class CustomMacroOp(_CustomOp):
    """Calls a device function that the user provides, which reads its inputs on one pipe and writes its outputs on another."""

    name = "hivm.hir.custom_macro"
    function_name = prop_def(StringAttr, prop_name="name")
    no_side_effect = opt_prop_def(UnitAttr)
    inputs = var_operand_def()
    outputs = var_operand_def()
    temp_buffers = var_operand_def()
    sync_related_args = var_operand_def(i64)
    res = var_result_def()
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    PIPE_ATTRIBUTES: ClassVar[Mapping[str, str]] = {"hivm.pipe_in": "input pipe", "hivm.pipe_out": "output pipe"}
    HAS_SYNC_ARGUMENTS: ClassVar[bool] = True

    def __init__(self, function: str, inputs: Sequence[Operand] = (), outputs: Sequence[Operand] = (), *,
                 core: CoreType | None = None, pipe_in: PipeName | None = None, pipe_out: PipeName | None = None,
                 symbol: str | None = None, vf_mode: str | None = None, temp_buffers: Sequence[Operand] = (),
                 no_side_effect: bool = False, sync_event_slots: Sequence[SyncEventSlotAttr] = (),
                 sync_related_args: Sequence[Operand] = (), attributes: Mapping[str, Attribute] | None = None) -> None:
        """Builds the op.

        Args:
            function: as for :class:`CustomOp`, like all arguments that are not listed here.
            pipe_in: the short name of the pipe that reads the inputs.
            pipe_out: the short name of the pipe that writes the outputs.
            sync_event_slots: the events that the op sets, waits for or uses internally.
            sync_related_args: the numbers of these events as i64 values, one per slot, or none.
        """
        extra = dict(attributes or {})
        if sync_event_slots:
            extra["sync_event_slots"] = ArrayAttr(sync_event_slots)
        IRDLOperation.__init__(
            self, operands=[list(inputs), list(outputs), list(temp_buffers), list(sync_related_args)],
            result_types=[results_for(*outputs)],
            properties={"name": StringAttr(function), "no_side_effect": UnitAttr() if no_side_effect else None},
            attributes=_attributes(core, {"hivm.pipe_in": pipe_in, "hivm.pipe_out": pipe_out}, symbol, vf_mode, extra))


OPERATIONS = (CustomOp, CustomMacroOp)
