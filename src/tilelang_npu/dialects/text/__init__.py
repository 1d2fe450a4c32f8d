"""Modules to text and back.

``parse_module`` reads and verifies; what is wrong is a TileError with the line and column: T601 where the text is no MLIR,
T602 where an op breaks a rule of its dialect. ``print_module`` writes the text that MLIR itself would.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping

from xdsl.dialects.builtin import ArrayAttr, CallSiteLoc, FileLineColLoc, FusedLoc, ModuleOp, NameLoc, UnknownLoc
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.traits import IsTerminator, NoTerminator
from xdsl.utils.exceptions import ParseError, PyRDLError, UnregisteredConstructException, VerifyException

from tilelang_npu.dialects.context import make_context
from tilelang_npu.dialects.ir import remarks
from tilelang_npu.dialects.text.reader import BrokenOp, TextParser
from tilelang_npu.dialects.text.refusals import (
    first_line,
    in_our_words,
    is_empty,
    of_python,
    refuse_what_is_no_text,
    remember,
)
from tilelang_npu.dialects.text.toolchains import require_writable
from tilelang_npu.dialects.text.writer import TextPrinter
from tilelang_npu.errors import Location, TileError

_BAD_TEXT = (VerifyException, PyRDLError, UnregisteredConstructException, ValueError, TypeError, LookupError, AssertionError,
             NotImplementedError, OverflowError, RecursionError, MemoryError, struct.error)
"""What xDSL raises on text that parses as tokens but makes no op or attribute."""

_UNDEFINED = re.compile(r"values used but not defined: \[%([^\],]+)")
"""xDSL's message, which points at the end of the text."""


def parse_module(text: str, filename: str = "<string>", *, allow_unregistered: bool = False, verify: bool = True,
                 empty: bool = False) -> ModuleOp:
    """Read a module, in custom or generic form.

    Args:
        text: MLIR text; ops without a module around get one.
        filename: name for messages and for the locations of ops that state none.
        allow_unregistered: take ops and attributes of dialects that this package does not know.
        verify: check the rules of the dialects.
        empty: read a text without operations as an empty module; by default such a text is an error.

    Raises:
        TileError: T601, the text is not MLIR; T602, an op breaks a rule.
    """
    parser: TextParser | None = None
    if empty and is_empty(text):
        return ModuleOp([])
    refuse_what_is_no_text(text, filename)
    try:
        parser = TextParser(make_context(allow_unregistered=allow_unregistered), text, filename)
        module = parser.parse_module()
    except ParseError as error:
        place = error.span.get_location()
        line, column, width = place.line, place.col, max(1, error.span.end - error.span.start)
        if parser is not None and (unknown := _UNDEFINED.match(error.msg)) and (use := _first_use(unknown[1], text)):
            (line, column), width = parser.place(use.start()), len(unknown[1]) + 1
        message = in_our_words(error.msg, error.span.text, text)
        raise _refused(message, text, Location(filename, line, column, column + width)) from None
    except BrokenOp as error:
        assert parser is not None
        remember(text, filename)
        raise TileError(f"'{error.name}' op {first_line(error)}", code="T602",
                        location=Location(filename, *parser.place(error.position))) from None
    except _BAD_TEXT as error:
        line, column = parser.place(parser.pos) if parser is not None else (1, 1)
        raise _refused(of_python(error), text, Location(filename, line, column)) from None
    if verify:
        remember(text, filename)
        verify_module(module)
    return module


def to_keep(module: ModuleOp) -> dict[str, str]:
    """All of a module as text, its locations and remarks with it."""
    return {"text": print_module(module, generic=True, locations=True), "remarks": remarks.collected(module)}


def read_back(kept: Mapping[str, str]) -> ModuleOp:
    """The module of which ``to_keep`` gave the text, unverified.

    The generic form states every location, so an op that the parser had to place has none.
    """
    name = "<kept>"
    module = parse_module(kept["text"], name, verify=False)
    for op in module.walk():
        if isinstance(op.location, FileLineColLoc) and op.location.filename.data == name:
            op.location = UnknownLoc()
    remarks.restore(module, kept["remarks"])
    return module


def print_module(op: Operation, *, generic: bool = False, locations: bool = False, toolchain: str = "master",
                 notes: Mapping[Operation, str] | None = None) -> str:
    """Write an op, usually a module, as text that ends with a line end.

    Args:
        op: what to write.
        generic: write every op in MLIR's generic form.
        locations: write ``loc(...)`` behind each op.
        toolchain: whose spelling: ``master`` of AscendNPU-IR, or ``1.0.0`` for its release v1.0.0.
        notes: comments, each behind its op.

    Raises:
        TileError: T603, the toolchain has no spelling for an op.
    """
    require_writable(op, toolchain, generic=generic)
    printer = TextPrinter(generic=generic, locations=locations, toolchain=toolchain, notes=notes)
    printer.print_op(op)
    return printer.text() + "\n"


def verify_module(module: Operation) -> None:
    """Check every op against the rules of its dialect, and that values are used only behind their definition.

    Raises:
        TileError: T602, at the location of the op.
    """
    _verify_op(module, set())


def location_of(op: Operation) -> Location | None:
    """The place in a source file that an op comes from, where it states one."""
    return _file_location(op.location)


def _file_location(attribute: Attribute) -> Location | None:
    if isinstance(attribute, FileLineColLoc):
        return Location(attribute.filename.data, attribute.line.data, attribute.column.data)
    if isinstance(attribute, CallSiteLoc):
        return _file_location(attribute.callee)
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
        raise _broken(op, first_line(error)) from None
    except (ValueError, LookupError, TypeError, AttributeError, AssertionError) as error:  # it stumbles over what is broken
        raise _broken(op, f"cannot be what it says: {first_line(error)}") from error
    for region in op.regions:
        _verify_region(op, region, visible)


def _verify_region(parent: Operation, region: Region, visible: set[SSAValue]) -> None:
    """Verify a region; ``visible`` holds the values defined before it, and is left as it was."""
    blocks = list(region.blocks)
    added: list[SSAValue] = []
    elsewhere: set[SSAValue] = set()
    if len(blocks) > 1:
        # Blocks may come in any order; values of the others count as defined.
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
                raise _broken(op, f"operand #{number} does not dominate this use")
        _verify_op(op, visible)
        visible.update(op.results)
        added += op.results
    if region.blocks.first is region.blocks.last and parent.has_trait(NoTerminator):
        return
    last = block.last_op
    if last is None:
        raise _broken(parent, "empty block: expect at least a terminator")
    if not last.has_trait(IsTerminator):
        raise _broken(last, "block with no terminator")


def _block_of(value: SSAValue) -> Block | None:
    return value.owner if isinstance(value.owner, Block) else value.owner.parent


def _first_use(name: str, text: str) -> re.Match[str] | None:
    return re.search(rf"%{re.escape(name)}(?![A-Za-z0-9$._-])", text)


def _broken(op: Operation, message: str) -> TileError:
    return TileError(f"'{op.name}' op {message}", code="T602", location=location_of(op))


def _refused(message: str, text: str, location: Location) -> TileError:
    remember(text, location.file)
    return TileError(message.strip(), code="T601", location=location)


