"""The attributes of MLIR's data layout and target dialect (dlti) in the syntax of LLVM 19.

AscendNPU-IR is built on LLVM 19.1.7: specifications are lists of ``#dlti.dl_entry``, and a system specification has ``:``
between a device and its specification. Later versions, and xDSL's own dlti, have ``=`` and no entries.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ArrayAttr, StringAttr
from xdsl.ir import Attribute, Dialect, ParametrizedAttribute, TypeAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer

from tilelang_npu.dialects.ir.declaration import fail


@irdl_attr_definition
class DataLayoutEntryAttr(ParametrizedAttribute):
    """One entry of a specification: ``#dlti.dl_entry<"UB_SIZE", 1572864 : i32>``; the key is a string or a type."""

    name = "dlti.dl_entry"
    key: Attribute
    value: Attribute

    def verify(self) -> None:
        if not isinstance(self.key, (StringAttr, TypeAttribute)):
            fail("expected a type or a quoted string as the key of a data layout entry")


class _EntryList(ParametrizedAttribute):
    """A specification that is a list of entries."""

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> list[Attribute]:
        return [ArrayAttr(parser.parse_comma_separated_list(parser.Delimiter.ANGLE, parser.parse_attribute))]

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            for parameter in self.parameters:
                assert isinstance(parameter, ArrayAttr)
                printer.print_list(parameter, printer.print_attribute)


@irdl_attr_definition
class DataLayoutSpecAttr(_EntryList):
    """The sizes and alignments of types: ``#dlti.dl_spec<#dlti.dl_entry<index, 64 : i32>>``."""

    name = "dlti.dl_spec"
    entries: ArrayAttr[Attribute]


@irdl_attr_definition
class TargetDeviceSpecAttr(_EntryList):
    """The properties of a device as a list of entries: ``#dlti.target_device_spec<#dlti.dl_entry<"X", 4 : i32>>``."""

    name = "dlti.target_device_spec"
    entries: ArrayAttr[Attribute]


@irdl_attr_definition
class TargetSystemSpecAttr(ParametrizedAttribute):
    """The devices of a system by name: ``#dlti.target_system_spec<"NPU" : #hacc.target_device_spec<...>>``."""

    name = "dlti.target_system_spec"
    entries: ArrayAttr[DataLayoutEntryAttr]

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> list[Attribute]:
        def entry() -> DataLayoutEntryAttr:
            device = parser.parse_str_literal()
            if parser.parse_optional_punctuation("=") is None:
                parser.parse_punctuation(":")
            return DataLayoutEntryAttr(StringAttr(device), parser.parse_attribute())

        return [ArrayAttr(parser.parse_comma_separated_list(parser.Delimiter.ANGLE, entry))]

    def print_parameters(self, printer: Printer) -> None:
        def entry(entry: DataLayoutEntryAttr) -> None:
            printer.print_attribute(entry.key)
            printer.print_string(" : ")
            printer.print_attribute(entry.value)

        with printer.in_angle_brackets():
            printer.print_list(self.entries, entry)

    def verify(self) -> None:
        if len({entry.key for entry in self.entries}) != len(self.entries):
            fail("repeated device in #dlti.target_system_spec")


Dlti = Dialect("dlti", [], [DataLayoutEntryAttr, DataLayoutSpecAttr, TargetDeviceSpecAttr, TargetSystemSpecAttr])
