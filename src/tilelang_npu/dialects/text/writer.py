"""A deterministic printer of MLIR text in the spelling of MLIR itself.

It differs from xDSL's printer in these points:

* An op name is printed without its dialect where MLIR omits the dialect (``module``, ``return``).
* Dictionaries are sorted by key.
* i64 elements of an array are printed without their type.
* An op whose custom form would omit one of its attributes is printed in generic form.
* The text is collected in memory, and the text of each type is cached.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from io import StringIO
from math import isfinite
from typing import TypeGuard

from xdsl.dialects.builtin import (
    AnyFloat,
    ArrayAttr,
    DictionaryAttr,
    FusedLoc,
    IntegerAttr,
    MemRefType,
    ModuleOp,
    UnregisteredOp,
    i64,
)
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation, Region, TypeAttribute
from xdsl.irdl import IRDLOperation
from xdsl.printer import Printer
from xdsl.traits import IsolatedFromAbove

from tilelang_npu.dialects.ir.declaration import SEGMENTS, counted_segments
from tilelang_npu.dialects.ir.remarks import strip_remarks
from tilelang_npu.dialects.text.formats import format_of, has_custom_form

_FUNCTION_FIELDS = ("sym_name", "function_type", "sym_visibility", "arg_attrs", "res_attrs")
_PLAIN = re.compile(rb"[ !#-\[\]-~]*")
"""The characters of a string that are printed without an escape: printable ASCII except quotes and backslashes."""


class TextPrinter(Printer):
    """The printer of MLIR text; the module's docstring lists its differences from xDSL's printer.

    Attributes:
        toolchain: the version of AscendNPU-IR whose syntax is printed: ``master``, or ``1.0.0`` for v1.0.0.
        notes: maps ops to comments; each comment is printed at the end of the op.
    """

    def __init__(self, *, generic: bool = False, locations: bool = False, toolchain: str = "master",
                 notes: Mapping[Operation, str] | None = None) -> None:
        super().__init__(StringIO(), print_generic_format=generic, print_debuginfo=locations)
        self.toolchain = toolchain
        self.notes = notes or {}
        self._parts: list[str] = []
        self._spelled: dict[int, tuple[Attribute, str]] = {}
        self._shown: set[str] = set()
        self._in_generic_form: Operation | None = None

    def text(self) -> str:
        """Returns the text that was printed so far."""
        return "".join(self._parts)

    def print_string(self, text: str, *, indent: int | None = None) -> None:
        if "\n" not in text:
            self._parts.append(text)
            return
        first, *others = text.split("\n")
        self._parts.append(first)
        for line in others:
            self._print_new_line(indent=indent)
            self._parts.append(line)

    def _print_new_line(self, indent: int | None = None, print_message: bool = True) -> None:
        level = self._indent if indent is None else indent
        self._parts.append("\n" + " " * (level * self.indent_num_spaces))

    def print_bytes_literal(self, bytestring: bytes) -> None:
        if _PLAIN.fullmatch(bytestring):  # xDSL prints character by character
            self._parts.append(f'"{bytestring.decode("ascii")}"')
        else:
            super().print_bytes_literal(bytestring)

    def print_attribute(self, attribute: Attribute) -> None:
        if isinstance(attribute, FusedLoc):
            attribute = strip_remarks(attribute)  # remarks are not part of the text
        if isinstance(attribute, TypeAttribute):
            # The cache holds the attribute too, so that no other attribute gets its id.
            known = self._spelled.get(id(attribute))
            if known is None:
                start = len(self._parts)
                super().print_attribute(attribute)
                known = (attribute, _short_space(attribute, "".join(self._parts[start:])))
                del self._parts[start:]
                self._spelled[id(attribute)] = known
            self._parts.append(known[1])
        elif isinstance(attribute, ArrayAttr):
            with self.in_square_brackets():
                self.print_list(attribute, self._print_element)
        elif isinstance(attribute, DictionaryAttr):
            self._print_dictionary(attribute.data)
        else:
            super().print_attribute(attribute)

    def print_float(self, value: float, type: AnyFloat) -> None:  # noqa: A002  (xDSL's name)
        if isfinite(value):
            super().print_float(value, type)
        else:
            self.print_string(f"0x{type.pack((value,))[::-1].hex().upper()}")

    def _print_element(self, attribute: Attribute) -> None:
        if isinstance(attribute, IntegerAttr) and attribute.type == i64:
            self.print_string(str(attribute.value.data))
        else:
            self.print_attribute(attribute)

    def print_region(self, region: Region, print_entry_block_args: bool = True, print_empty_block: bool = True,
                     print_block_terminators: bool = True) -> None:
        # An implied terminator is printed if it has attributes.
        has_attributes = any(block.last_op is not None and block.last_op.attributes for block in region.blocks)
        super().print_region(region, print_entry_block_args, print_empty_block, print_block_terminators or has_attributes)

    def print_attr_dict(self, attr_dict: Mapping[str, Attribute]) -> None:
        self.shown(*attr_dict)
        self._print_dictionary(attr_dict)

    def _print_dictionary(self, entries: Mapping[str, Attribute]) -> None:
        super().print_attr_dict({name: entries[name] for name in sorted(entries)})

    def print_op(self, op: Operation) -> None:
        if isinstance(op, UnregisteredOp) or op in self.diagnostic.op_messages:
            super().print_op(op)
            return
        isolated = op.has_trait(IsolatedFromAbove)
        self._print_results(op)
        if isolated:
            self.enter_scope()
        if self.print_generic_format or not self._print_custom(op):
            self._parts.append(f'"{op.name}"')
            self.print_op_with_default_format(op)
        if isolated:
            self.exit_scope()
        note = self.notes.get(op)
        if note:
            self._parts.append(f"  // {note}")

    def _print_custom(self, op: Operation) -> bool:
        """Prints an op in its custom form; returns False, and prints nothing, if it has none or if that omits an attribute."""
        upstream = format_of(type(op))
        if not has_custom_form(type(op)):
            return False
        outer, self._shown = self._shown, set()
        start = len(self._parts)
        before = (dict(self._ssa_values), dict(self._blocks)) if op.attributes and op.regions else None
        if before is not None:
            self.enter_scope()
        self._parts.append(self._short_name(op))
        if upstream is not None and isinstance(op, IRDLOperation):
            upstream.print(self, op)
        elif _has_argument_attributes(op):
            assert isinstance(op, FuncOp)
            _print_declaration(self, op)
        else:
            op.print(self)
        complete = op.attributes.keys() <= self._shown
        self._shown = outer
        if before is not None:
            self._leave(keep=complete)
            if not complete:
                self._ssa_values, self._blocks = before
        if not complete:
            del self._parts[start:]
        elif self.print_debuginfo:
            self._parts.append(" ")
            self.print_attribute(op.location)
        return complete

    def _leave(self, *, keep: bool) -> None:
        """Leaves a scope of names; with ``keep`` the enclosing scope takes the names over."""
        scopes: tuple[list[int] | list[dict[str, int]], ...] = (
            self._next_valid_name_id, self._next_valid_block_id, self._ssa_names, self._block_names)
        for scope in scopes:
            del scope[-2 if keep else -1]

    def print_op_with_default_format(self, op: Operation) -> None:
        counted = counted_segments(type(op), len(op.operands)) is not None
        stated = op.properties
        outer, self._in_generic_form = self._in_generic_form, op
        if counted:
            op.properties = {name: value for name, value in stated.items() if name != SEGMENTS}
        super().print_op_with_default_format(op)
        op.properties = stated
        self._in_generic_form = outer

    def print_operation_type(self, op: Operation) -> None:
        """Prints the operand and result types of an op, and the location only if the op is printed in generic form."""
        locations, self.print_debuginfo = self.print_debuginfo, self.print_debuginfo and op is self._in_generic_form
        super().print_operation_type(op)
        self.print_debuginfo = locations

    def _print_results(self, op: Operation) -> None:
        if op.results:
            super()._print_results(op)

    def _short_name(self, op: Operation) -> str:
        parent = op.parent_op()
        if parent is None or isinstance(parent, ModuleOp):
            return op.name.removeprefix("builtin.")
        return op.name.removeprefix("func.") if isinstance(parent, FuncOp) else op.name

    def print_op_attributes(self, attributes: Mapping[str, Attribute], *, reserved_attr_names: Iterable[str] = (),
                            print_keyword: bool = False) -> bool:
        # xDSL passes a string where it means the set with this string
        reserved = {reserved_attr_names} if isinstance(reserved_attr_names, str) else reserved_attr_names
        return bool(attributes) and super().print_op_attributes(
            attributes, reserved_attr_names=reserved, print_keyword=print_keyword)

    def shown(self, *names: str) -> None:
        """Records that the text of the current op states these attributes outside of its attribute dictionary.

        The printer uses the generic form of an op if its custom form does not state all attributes.
        """
        self._shown.update(names)


def _short_space(type_: TypeAttribute, text: str) -> str:
    """The text of a type, in which a memory space that is a number is printed without its type."""
    if isinstance(type_, MemRefType) and isinstance(type_.memory_space, IntegerAttr):
        return text.removesuffix(" : i64>") + ">" if text.endswith(" : i64>") else text
    return text


def _has_argument_attributes(op: Operation) -> TypeGuard[FuncOp]:
    """Whether an op is a function declaration whose arguments or results have attributes, which xDSL omits."""
    return isinstance(op, FuncOp) and not op.body.blocks and (op.arg_attrs is not None or op.res_attrs is not None)


def _print_declaration(printer: Printer, op: FuncOp) -> None:
    """Prints a declaration with the attributes of its arguments and results."""
    def values(types: Sequence[Attribute], listed: ArrayAttr[DictionaryAttr] | None) -> None:
        given = [attributes.data for attributes in listed] if listed is not None else []

        def value(number: int) -> None:
            printer.print_attribute(types[number])
            if given[number:] and given[number]:
                printer.print_string(" ")
                printer.print_attr_dict(given[number])

        with printer.in_parens():
            printer.print_list(range(len(types)), value)

    if op.sym_visibility is not None:
        printer.print_string(f" {op.sym_visibility.data}")
    printer.print_string(" ")
    printer.print_symbol_name(op.sym_name.data)
    values(op.function_type.inputs.data, op.arg_attrs)
    if op.function_type.outputs.data:
        printer.print_string(" -> ")
        values(op.function_type.outputs.data, op.res_attrs)
    printer.print_op_attributes(op.attributes, reserved_attr_names=_FUNCTION_FIELDS, print_keyword=True)
