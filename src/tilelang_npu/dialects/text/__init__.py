"""Parses modules from text and prints them.

``parse_module`` parses and verifies. It reports errors as a TileError with the line and column: T601 if the text is not valid
MLIR, T602 if an op breaks a rule of its dialect. ``print_module`` prints the text that MLIR itself would print.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping
from dataclasses import replace

from xdsl.dialects.builtin import ArrayAttr, CallSiteLoc, FileLineColLoc, FusedLoc, ModuleOp, NameLoc, UnknownLoc
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.traits import IsTerminator, NoTerminator
from xdsl.utils.exceptions import ParseError, PyRDLError, UnregisteredConstructException, VerifyException

from tilelang_npu.dialects.context import make_context
from tilelang_npu.dialects.ir import remarks
from tilelang_npu.dialects.text.reader import BrokenOp, TextParser
from tilelang_npu.dialects.text.refusals import (
    cache_lines,
    describe_exception,
    first_line,
    improve_message,
    is_empty,
    reject_invalid_text,
)
from tilelang_npu.dialects.text.toolchains import require_writable
from tilelang_npu.dialects.text.writer import TextPrinter
from tilelang_npu.errors import Location, TileError

_PARSE_FAILURES = (VerifyException, PyRDLError, UnregisteredConstructException, ValueError, TypeError, LookupError,
                   AssertionError, NotImplementedError, OverflowError, RecursionError, MemoryError, struct.error)
"""The exceptions that xDSL raises on text whose tokens are valid but that describes no valid op or attribute."""

_UNDEFINED = re.compile(r"values used but not defined: \[%([^\],]+)")
"""xDSL's message on undefined values, whose location is the end of the text."""


def parse_module(text: str, filename: str = "<string>", *, allow_unregistered: bool = False, verify: bool = True,
                 empty: bool = False) -> ModuleOp:
    """Parses the text of a module, in which ops may have their custom or their generic form.

    Args:
        text: MLIR text; top-level ops that are not in a module are put into one.
        filename: the file name for messages, and for the locations of ops whose text states no location.
        allow_unregistered: whether ops and attributes of unknown dialects are accepted.
        verify: whether the module is verified by the rules of the dialects.
        empty: whether a text without operations is accepted as an empty module; by default it is an error.

    Raises:
        TileError: T601, the text is not valid MLIR; T602, an op breaks a rule of its dialect.
    """
    parser: TextParser | None = None
    if empty and is_empty(text):
        return ModuleOp([])
    reject_invalid_text(text, filename)
    try:
        parser = TextParser(make_context(allow_unregistered=allow_unregistered), text, filename)
        module = parser.parse_module()
    except ParseError as error:
        place = error.span.get_location()
        line, column, width = place.line, place.col, max(1, error.span.end - error.span.start)
        if parser is not None and (unknown := _UNDEFINED.match(error.msg)) and (use := _first_use(unknown[1], text)):
            (line, column), width = parser.place(use.start()), len(unknown[1]) + 1
        message = improve_message(error.msg, error.span.text)
        raise _text_error(message, text, Location(filename, line, column, column + width)) from None
    except BrokenOp as error:
        assert parser is not None
        cache_lines(text, filename)
        raise TileError(f"'{error.name}' op {first_line(error)}", code="T602",
                        location=Location(filename, *parser.place(error.position))) from None
    except _PARSE_FAILURES as error:
        line, column = parser.place(parser.pos) if parser is not None else (1, 1)
        raise _text_error(describe_exception(error), text, Location(filename, line, column)) from None
    if verify:
        cache_lines(text, filename)
        verify_module(module)
    return module


def serialise_module(module: ModuleOp) -> dict[str, str]:
    """Returns a module as a dictionary of two strings: its text with locations, and its remarks as JSON."""
    return {"text": print_module(module, generic=True, locations=True), "remarks": remarks.remarks_as_json(module)}


def deserialise_module(data: Mapping[str, str]) -> ModuleOp:
    """Returns the module that :func:`serialise_module` converted to ``data``; does not verify the module."""
    # The generic form states every known location. An op without a location in the text gets one in the file <serialised> from
    # the parser, which is removed again.
    name = "<serialised>"
    module = parse_module(data["text"], name, verify=False)
    for op in module.walk():
        if isinstance(op.location, FileLineColLoc) and op.location.filename.data == name:
            op.location = UnknownLoc()
    remarks.restore_remarks(module, data["remarks"])
    return module


def print_module(op: Operation, *, generic: bool = False, locations: bool = False, toolchain: str = "master",
                 notes: Mapping[Operation, str] | None = None) -> str:
    """Returns the text of an op, usually a module, and a final newline.

    Args:
        op: the op to print.
        generic: whether every op is printed in MLIR's generic form.
        locations: whether ``loc(...)`` is printed after each op.
        toolchain: the version of AscendNPU-IR whose syntax is printed: ``master``, or ``1.0.0`` for the release v1.0.0.
        notes: maps ops to comments; each comment is printed at the end of the op.

    Raises:
        TileError: T603, the version of AscendNPU-IR is unknown or does not have an op or a property of the module.
    """
    require_writable(op, toolchain, generic=generic)
    printer = TextPrinter(generic=generic, locations=locations, toolchain=toolchain, notes=notes)
    printer.print_op(op)
    return printer.text() + "\n"


def verify_module(module: Operation) -> None:
    """Verifies that every op obeys the rules of its dialect, and that definitions of values dominate their uses.

    Raises:
        TileError: T602, with the location of the op that breaks a rule.
    """
    _verify_op(module, set())


def location_of(op: Operation) -> Location | None:
    """Returns the file, line and column in the location of an op, with the calls that lead there; None if it names no file."""
    return _file_location(op.location)


def _file_location(attribute: Attribute) -> Location | None:
    if isinstance(attribute, FileLineColLoc):
        return Location(attribute.filename.data, attribute.line.data, attribute.column.data)
    if isinstance(attribute, CallSiteLoc):
        callee, call = _file_location(attribute.callee), _file_location(attribute.caller)
        if callee is None or call is None:
            return callee
        return replace(callee, callers=(*callee.callers, replace(call, callers=()), *call.callers))
    if isinstance(attribute, NameLoc):
        return _file_location(attribute.location)
    if isinstance(attribute, FusedLoc):
        assert isinstance(attribute.locations, ArrayAttr)
        places = (_file_location(inner) for inner in attribute.locations)
        return next((place for place in places if place is not None), None)
    return None


def _verify_op(op: Operation, visible: set[SSAValue]) -> None:
    try:
        op.verify_()
    except VerifyException as error:
        raise _rule_error(op, first_line(error)) from None
    except (ValueError, LookupError, TypeError, AttributeError, AssertionError) as error:  # raised by rules on a broken op
        raise _rule_error(op, f"cannot be verified: {first_line(error)}") from error
    for region in op.regions:
        _verify_region(op, region, visible)


def _verify_region(parent: Operation, region: Region, visible: set[SSAValue]) -> None:
    """Verifies a region; ``visible`` holds the values defined before the region, and is unchanged afterwards."""
    blocks = list(region.blocks)
    added: list[SSAValue] = []
    elsewhere: set[SSAValue] = set()
    if len(blocks) > 1:
        # Blocks may come in any order, so values of other blocks count as defined.
        elsewhere = {value for block in blocks for value in (*block.args, *(r for op in block.ops for r in op.results))}
    for block in blocks:
        _verify_block(parent, region, block, visible, added, elsewhere)
    visible.difference_update(added)


def _verify_block(parent: Operation, region: Region, block: Block, visible: set[SSAValue], added: list[SSAValue],
                  elsewhere: set[SSAValue]) -> None:
    visible.update(block.args)
    added += block.args
    for op in block.ops:
        for number, operand in enumerate(op.operands):
            if operand not in visible and (operand not in elsewhere or _block_of(operand) is block):
                raise _rule_error(op, f"operand #{number} does not dominate this use")
        _verify_op(op, visible)
        visible.update(op.results)
        added += op.results
    if region.blocks.first is region.blocks.last and parent.has_trait(NoTerminator):
        return
    last = block.last_op
    if last is None:
        raise _rule_error(parent, "empty block: expect at least a terminator")
    if not last.has_trait(IsTerminator):
        raise _rule_error(last, "block with no terminator")


def _block_of(value: SSAValue) -> Block | None:
    return value.owner if isinstance(value.owner, Block) else value.owner.parent


def _first_use(name: str, text: str) -> re.Match[str] | None:
    return re.search(rf"%{re.escape(name)}(?![A-Za-z0-9$._-])", text)


def _rule_error(op: Operation, message: str) -> TileError:
    return TileError(f"'{op.name}' op {message}", code="T602", location=location_of(op))


def _text_error(message: str, text: str, location: Location) -> TileError:
    cache_lines(text, location.file)
    return TileError(message.strip(), code="T601", location=location)


