"""Remarks: the decisions of passes, stored on the operations of a module.

A remark records one thing that a pass did, or considered and refused: the pass, the optimisation, the line, a text, and the
same as data. An operation has the remark about itself in its location, as the metadata of a fused location, which later passes
copy with the operation. An operation with events among its operands has a remark for each event. The module has, in the same
way and in their order, the remarks about operations that no longer exist or were never made, such as a copy that was removed or
a loop that stays serial. The text of a module does not show remarks, and the kernel cache stores them next to the text.
Reports read remarks, so no report has to repeat the analysis of a pass.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints

from xdsl.dialects.builtin import ArrayAttr, FusedLoc, LocationAttr, ModuleOp
from xdsl.ir import Attribute, Data, Operation
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer

from tilelang_npu.dialects.ir.changes import Change
from tilelang_npu.errors import Location

__all__ = [
    "DONE",
    "MADE",
    "REFUSED",
    "Held",
    "Placed",
    "Points",
    "Remark",
    "RemarkAttr",
    "Scoped",
    "Touched",
    "Turns",
    "WaitReason",
    "Waits",
    "add_remark",
    "module_remarks",
    "record_done",
    "record_refusal",
    "remark_as_data",
    "remark_of",
    "remarks_as_json",
    "remarks_of",
    "remarks_of_events",
    "restore_remarks",
    "set_remark",
    "strip_remarks",
]

MADE, DONE, REFUSED = "made", "done", "refused"
"""The kinds of remarks: why an operation was made, what a pass did, and what it considered and refused."""


@dataclass(frozen=True)
class Touched:
    """One of two accesses that a wait orders: the name of its buffer, its line, and whether it writes."""

    name: str
    line: Location | None
    writes: bool


@dataclass(frozen=True)
class WaitReason:
    """Two accesses that a wait orders.

    Attributes:
        kind: the dependence, ``RAW``, ``WAR`` or ``WAW``.
        first, second: the earlier and the later access.
        size: the number of bytes that both can access.
        distance: the iteration distance of the dependence.
    """

    kind: str
    first: Touched
    second: Touched
    size: int
    distance: int


@dataclass(frozen=True)
class Waits:
    """The purpose of an operation that synchronises.

    Attributes:
        reasons: the pairs of accesses that it orders; a barrier may order several.
        source, target: the pipe that is waited for and the pipe that waits; equal for a barrier. Between cores, with the core:
            ``AIC.FIX``.
        numbers: the numbers of the event or flag; several are used by successive iterations in turn.
        before: the line before which it waits.
        behind: whether it is after the loop of the waits, and takes the events that the last iterations have set.
        place: the position of the event among the ``sync_related_args`` of its operation; None where the operation itself sets
            the event or waits for it.
    """

    reasons: tuple[WaitReason, ...] = ()
    source: str = ""
    target: str = ""
    numbers: tuple[int, ...] = ()
    before: Location | None = None
    behind: bool = False
    place: int | None = None


@dataclass(frozen=True)
class Placed:
    """The buffer at an address.

    Attributes:
        name: the author's name; ``scratch`` for the temporary buffer of an op.
        number: the number of the buffer in its core's memory; all slots of a multi-buffer have the same number.
        slot, slots: the number of the multi-buffer slot at the address, and the number of slots.
        nbytes: bytes of one slot.
        space: the memory, in HIVM's spelling.
        room: bytes of the memory that were available.
        span: the live range, as positions in the program.
        lines: the first and the last line of the live range; 0 where no operation has a line.
        pinned: whether the author chose the address.
    """

    name: str
    number: int
    slot: int
    slots: int
    nbytes: int
    space: str
    room: int
    span: tuple[int, int]
    lines: tuple[int, int]
    pinned: bool = False


@dataclass(frozen=True)
class Points:
    """A ``T.Parallel``, or a part of its iteration space.

    Attributes:
        extents: the extent of each axis; None where it is dynamic.
        starts: the first index of each axis, if this is a part of the iteration space; empty if it is the whole.
        ops: the vector operations, without copies and fills; empty where the points are computed one by one.
        unaligned: how operands that are not aligned to a block of UB are handled.
        rearranged: the operands that are rearranged into the order of the axes, and the operation that does it.
        rows: the number of rows per iteration of a scalar loop around the vector work; 0 without such a loop.
    """

    extents: tuple[int | None, ...]
    starts: tuple[int, ...] = ()
    ops: tuple[str, ...] = ()
    unaligned: tuple[str, ...] = ()
    rearranged: tuple[str, ...] = ()
    rows: int = 0


@dataclass(frozen=True)
class Scoped:
    """A buffer of the author, and its memories.

    Attributes:
        label: the author's name.
        spaces: the memories, in HIVM's spelling; a buffer with several memories has a copy in each.
    """

    label: str
    spaces: tuple[str, ...]


@dataclass(frozen=True)
class Turns:
    """A pipelined loop.

    Attributes:
        stages: the ``num_stages`` that the author asked for.
        labels: the multi-buffers of the loop.
        spaces: the memory of each, in HIVM's spelling.
        places: the line of the allocation of each.
    """

    stages: int
    labels: tuple[str, ...]
    spaces: tuple[str, ...]
    places: tuple[Location | None, ...] = ()


@dataclass(frozen=True)
class Held:
    """The buffers of a refused optimisation.

    Attributes:
        labels: the author's names.
        space: their memory, in HIVM's spelling.
        shared: whether they share bytes, so that accesses of one wait for accesses of another.
        bytes_alone: whether the refusal costs only memory, which costs time only if memory is short.
    """

    labels: tuple[str, ...]
    space: str
    shared: bool = False
    bytes_alone: bool = False


Facts = Waits | Placed | Points | Scoped | Turns | Held
_KINDS = {kind.__name__: kind for kind in (*get_args(Facts), *get_args(Change))}


@dataclass(frozen=True)
class Remark:
    """A decision of a pass.

    Attributes:
        maker: the pass.
        kind: ``MADE``, ``DONE`` or ``REFUSED``.
        about: the optimisation; empty if the remark is not about one.
        place: the line; None for a remark on an operation, which has its own location, and for one that is about no line.
        text: the decision in words.
        edit: the change to the author's text that makes a refused optimisation possible.
        facts: the decision as data.
        change: the edit as data, if a tool can make it.
    """

    maker: str
    kind: str = MADE
    about: str = ""
    place: Location | None = None
    text: str = ""
    edit: str = ""
    facts: Facts | None = None
    change: Change | None = None


def remark_as_data(given: Remark) -> dict[str, Any]:
    """A remark as JSON data, without the fields that have their default."""
    found = {name: _plain(value) for name, default in _PLAIN_DEFAULTS if (value := getattr(given, name)) != default}
    for name in _DATA_FIELDS:
        if (value := getattr(given, name)) is not None:
            found[name] = {"is": type(value).__name__, **_plain(value)}
    return found


_DATA_FIELDS = ("facts", "change")
_PLAIN_DEFAULTS = [(each.name, getattr(Remark(""), each.name)) for each in fields(Remark) if each.name not in _DATA_FIELDS]


@cache
def _field_names(kind: type) -> tuple[str, ...]:
    return tuple(each.name for each in fields(kind)) if is_dataclass(kind) else ()


def _plain(given: Any) -> Any:
    """A value as JSON data. Not ``asdict``, which copies each number, and a kernel has thousands of remarks."""
    if isinstance(given, tuple):
        return tuple([_plain(each) for each in given])
    names = _field_names(given.__class__)
    return {name: _plain(getattr(given, name)) for name in names} if names else given


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def _read(kind: Any, given: Any) -> Any:
    """The value of a type of which ``_plain`` made the data."""
    if kind in (Facts | None, Change | None):
        return None if given is None else _read(_KINDS[given["is"]], given)
    if get_origin(kind) is UnionType:
        return None if given is None else _read(next(each for each in get_args(kind) if each is not NoneType), given)
    if get_origin(kind) is tuple:
        inner, *_ = get_args(kind)
        return tuple(_read(inner, each) for each in given)
    if isinstance(given, Mapping):
        hints = _hints(kind)
        return kind(**{each.name: _read(hints[each.name], given[each.name]) for each in fields(kind) if each.name in given})
    return given


@irdl_attr_definition
class RemarkAttr(Data[tuple[Remark, ...]]):
    """The remarks of an operation or a module, as the metadata of its location."""

    name = "tile.remark"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> tuple[Remark, ...]:
        with parser.in_angle_brackets():
            return tuple(_read(Remark, each) for each in json.loads(parser.parse_str_literal()))

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string_literal(json.dumps([remark_as_data(each) for each in self.data]))


def _remarks_on(op: Operation) -> tuple[Remark, ...]:
    where = op.location
    return where.metadata.data if isinstance(where, FusedLoc) and isinstance(where.metadata, RemarkAttr) else ()


def _store(op: Operation, found: tuple[Remark, ...]) -> None:
    inner: Attribute = strip_remarks(op.location)
    op.location = FusedLoc(ArrayAttr([inner]), RemarkAttr(found))


def set_remark(op: Operation, remark: Remark) -> None:
    """Sets the remark of an operation, in place of all that it has."""
    _store(op, (remark,))


def remark_of(op: Operation) -> Remark | None:
    """The remark of an operation about itself; None if it has none."""
    return next((remark for remark in _remarks_on(op) if _event_position(remark) is None), None)


def remarks_of(op: Operation) -> tuple[Remark, ...]:
    """All remarks of an operation: about itself, and about the events among its operands."""
    return _remarks_on(op)


def remarks_of_events(op: Operation) -> dict[int, Remark]:
    """The remarks of an operation about the events among its operands, by position in its ``sync_related_args``."""
    return {position: remark for remark in _remarks_on(op) if (position := _event_position(remark)) is not None}


def _event_position(remark: Remark) -> int | None:
    return remark.facts.place if isinstance(remark.facts, Waits) else None


def add_remark(op: Operation, remark: Remark) -> None:
    """Adds a remark to a module, about something without an operation, or to an operation, about an event of it."""
    _store(op, (*_remarks_on(op), remark))


def module_remarks(module: ModuleOp, *kinds: type[Facts]) -> Iterator[Remark]:
    """The remarks of a module, in the order in which they were added; with ``kinds`` only those with such facts."""
    for each in _remarks_on(module):
        if not kinds or isinstance(each.facts, kinds):
            yield each


def record_done(module: ModuleOp, name: str, where: Location | None, text: str, facts: Facts | None = None,
                maker: str = "") -> None:
    """Adds a remark to a module about something that an optimisation did.

    Args:
        module: the module.
        name: the optimisation.
        where: the line.
        text: what was done.
        facts: the same as data.
        maker: the pass, if its name differs from the optimisation's.
    """
    add_remark(module, Remark(maker or name, DONE, name, where, text, facts=facts))


def record_refusal(module: ModuleOp, name: str, where: Location | None, text: str, edit: str, facts: Facts | None = None,
            maker: str = "", change: Change | None = None) -> None:
    """Adds a remark to a module about something that an optimisation considered and refused.

    Args:
        module, name, where, facts, maker: as for :func:`record_done`.
        text: the reason, with sizes.
        edit: the change to the author's text that makes the optimisation possible.
        change: the same as data.
    """
    add_remark(module, Remark(maker or name, REFUSED, name, where, text, edit, facts, change))


def strip_remarks(location: LocationAttr) -> LocationAttr:
    """A location without its remarks."""
    if not (isinstance(location, FusedLoc) and isinstance(location.metadata, RemarkAttr)):
        return location
    assert isinstance(location.locations, ArrayAttr)
    inner: LocationAttr = location.locations.data[0]
    return inner


def remarks_as_json(module: ModuleOp) -> str:
    """All remarks in a module as JSON text, by the numbers of their operations in ``walk`` order; the module is number 0."""
    found = {number: [remark_as_data(each) for each in _remarks_on(op)] for number, op in enumerate(module.walk())}
    return json.dumps({number: remarks for number, remarks in found.items() if remarks})


def restore_remarks(module: ModuleOp, text: str) -> None:
    """Gives a module that was printed and parsed the remarks of which :func:`remarks_as_json` made ``text``."""
    found = json.loads(text)
    for number, op in enumerate(module.walk()):
        if str(number) in found:
            _store(op, tuple(_read(Remark, each) for each in found[str(number)]))
