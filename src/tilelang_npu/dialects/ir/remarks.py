"""What passes decided, kept with what they made of a module.

A remark is about one thing that a pass did, or looked at and left: which pass, what, where, in words, and as data. What is
about an operation that stands in the module is carried by that operation, beside its source location, as the metadata of a
fused one; there it is copied wherever the operation is, whatever passes come later. An operation that takes events from outside
carries one for each. What is about something that is gone, or never came to be, such as a copy left out or a loop that stays
serial, is carried by the module in the same way, in the order in which it was said. No text shows remarks, and the kernel cache
keeps them next to the text. Reports read them, so that none of them has to find out again what a pass has known.
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

__all__ = ["DONE", "MADE", "REFUSED", "Held", "Placed", "Points", "Remark", "RemarkAttr", "Scoped", "Touched", "Turns",
           "WaitReason", "Waits", "as_data", "collected", "done", "place", "refused", "remark", "remark_of",
           "remarks_of", "remarks_of_events", "restore", "tell", "told"]

MADE, DONE, REFUSED = "made", "done", "refused"
"""What a remark says: why its operation was made, what was done, or what was looked at and left."""


@dataclass(frozen=True)
class Touched:
    """One of two accesses that are kept apart: what its buffer is called, the line, and whether it writes."""

    name: str
    line: Location | None
    writes: bool


@dataclass(frozen=True)
class WaitReason:
    """Two accesses that a wait keeps apart.

    Attributes:
        kind: ``RAW``, ``WAR`` or ``WAW``.
        first, second: the earlier and the later one.
        size: bytes that they can have in common.
        distance: iterations between them.
    """

    kind: str
    first: Touched
    second: Touched
    size: int
    distance: int


@dataclass(frozen=True)
class Waits:
    """What an operation that synchronises is for.

    Attributes:
        reasons: the accesses that it is for; a barrier may be for several pairs.
        source, target: the pipes, the same for a barrier; between the cores ``AIC.FIX`` and the like.
        numbers: the event's or flag's numbers, which iterations take in turn.
        before: the line in front of which it waits.
        behind: it stands behind the loop of the one that waits there, and takes back what the last iterations have left.
        place: which of the ``sync_related_args`` of its operation the event is; None where the operation is the set or wait.
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
    """What has the bytes of an address.

    Attributes:
        name: the user's name; ``scratch`` for a temporary that an op needs.
        number: which of the buffers of its core's memory; the slots of one buffer have the same.
        slot, slots: which of the buffer's copies, which the iterations of its loop take in turn, and how many there are.
        nbytes: bytes of one copy.
        space: the memory, as HIVM spells it.
        room: bytes of it that could be given out.
        span: positions in the program from which to which it holds a value.
        lines: the first and the last line of these; 0 where none has one.
        pinned: the author chose the address.
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
    """A ``T.Parallel``, or a part of one.

    Attributes:
        extents: points along each axis; None where that is known only at run time.
        starts: the first point, by axis, of a part of the points that was taken apart; empty where it is all of them.
        ops: the vector operations, copies and fills left out; none where its points are computed one by one.
        unaligned: what was done about operands that begin at no block of UB.
        rearranged: which operands were brought into the order of the points, and by which operation.
        rows: how many rows the vector work takes at once, in a scalar loop around it; 0 for all of them.
    """

    extents: tuple[int | None, ...]
    starts: tuple[int, ...] = ()
    ops: tuple[str, ...] = ()
    unaligned: tuple[str, ...] = ()
    rearranged: tuple[str, ...] = ()
    rows: int = 0


@dataclass(frozen=True)
class Scoped:
    """A buffer of the author's, and the memories that it is in, as HIVM spells them.

    Attributes:
        label: what the author calls it.
        spaces: the memories; a buffer of several has a copy in each of them.
    """

    label: str
    spaces: tuple[str, ...]


@dataclass(frozen=True)
class Turns:
    """A pipelined loop.

    Attributes:
        stages: what its author asked for.
        labels: the buffers of several slots that its iterations take in turn.
        spaces: the memory of each, as HIVM spells it.
        places: where each is allocated.
    """

    stages: int
    labels: tuple[str, ...]
    spaces: tuple[str, ...]
    places: tuple[Location | None, ...] = ()


@dataclass(frozen=True)
class Held:
    """Buffers that a refusal leaves as they are.

    Attributes:
        labels: what the author calls them.
        space: their memory, as HIVM spells it.
        shared: whether they have bytes in common, and wait for each other, not each for itself.
        bytes_alone: whether it is their bytes alone that are the price, which costs time where these are missed.
    """

    labels: tuple[str, ...]
    space: str
    shared: bool = False
    bytes_alone: bool = False


Facts = Waits | Placed | Points | Scoped | Turns | Held
_KINDS = {kind.__name__: kind for kind in (*get_args(Facts), *get_args(Change))}


@dataclass(frozen=True)
class Remark:
    """What a pass did, or looked at and left.

    Attributes:
        maker: the pass.
        kind: ``MADE``, ``DONE`` or ``REFUSED``.
        about: the optimisation that it is about; empty where it is about none.
        place: the line; None for what is about an operation, which has one itself, or about no line.
        text: in words.
        edit: what the author can change so that what was refused is done.
        facts: the same as data.
        change: the edit as data, where a tool can make it.
    """

    maker: str
    kind: str = MADE
    about: str = ""
    place: Location | None = None
    text: str = ""
    edit: str = ""
    facts: Facts | None = None
    change: Change | None = None


def as_data(given: Remark) -> dict[str, Any]:
    """A remark as JSON; what is as usual is left out."""
    found = {name: _plain(value) for name, usual in _USUAL if (value := getattr(given, name)) != usual}
    for name in _OF_A_KIND:
        if (value := getattr(given, name)) is not None:
            found[name] = {"is": type(value).__name__, **_plain(value)}
    return found


_OF_A_KIND = ("facts", "change")
_USUAL = [(each.name, getattr(Remark(""), each.name)) for each in fields(Remark) if each.name not in _OF_A_KIND]


@cache
def _names(kind: type) -> tuple[str, ...]:
    return tuple(each.name for each in fields(kind)) if is_dataclass(kind) else ()


def _plain(given: Any) -> Any:
    """Data as JSON has it. A kernel has thousands of remarks, and ``asdict`` copies each number in them."""
    if isinstance(given, tuple):
        return tuple([_plain(each) for each in given])
    names = _names(given.__class__)
    return {name: _plain(getattr(given, name)) for name in names} if names else given


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def _read(kind: Any, given: Any) -> Any:
    """What ``_plain`` made JSON of, by its type."""
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
    """Remarks as metadata of a location: one of an operation, all those of a module."""

    name = "tile.remark"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> tuple[Remark, ...]:
        with parser.in_angle_brackets():
            return tuple(_read(Remark, each) for each in json.loads(parser.parse_str_literal()))

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string_literal(json.dumps([as_data(each) for each in self.data]))


def _carried(op: Operation) -> tuple[Remark, ...]:
    where = op.location
    return where.metadata.data if isinstance(where, FusedLoc) and isinstance(where.metadata, RemarkAttr) else ()


def _carry(op: Operation, said: tuple[Remark, ...]) -> None:
    inner: Attribute = place(op.location)
    op.location = FusedLoc(ArrayAttr([inner]), RemarkAttr(said))


def remark(op: Operation, said: Remark) -> None:
    """Let an operation carry a remark, in place of one that it may have."""
    _carry(op, (said,))


def remark_of(op: Operation) -> Remark | None:
    """The remark that an operation carries about itself."""
    return next((said for said in _carried(op) if _place_of_event(said) is None), None)


def remarks_of(op: Operation) -> tuple[Remark, ...]:
    """All remarks that an operation carries: about itself, and about the events that it takes."""
    return _carried(op)


def remarks_of_events(op: Operation) -> dict[int, Remark]:
    """The remarks that an operation carries about the events that it takes, by their place in its ``sync_related_args``."""
    return {place: said for said in _carried(op) if (place := _place_of_event(said)) is not None}


def _place_of_event(said: Remark) -> int | None:
    return said.facts.place if isinstance(said.facts, Waits) else None


def tell(op: Operation, said: Remark) -> None:
    """Let a module carry one remark more, about something that has no operation; or an operation, about an event it takes."""
    _carry(op, (*_carried(op), said))


def told(module: ModuleOp, *kinds: type[Facts]) -> Iterator[Remark]:
    """What a module carries, in the order in which it was said; with kinds, what has facts of one of them."""
    for each in _carried(module):
        if not kinds or isinstance(each.facts, kinds):
            yield each


def done(module: ModuleOp, name: str, where: Location | None, text: str, facts: Facts | None = None, maker: str = "") -> None:
    """Say what an optimisation did.

    Args:
        module: what it was done to.
        name: the optimisation.
        where: the line that it is about.
        text: what was done.
        facts: the same as data.
        maker: the pass, where it has another name.
    """
    tell(module, Remark(maker or name, DONE, name, where, text, facts=facts))


def refused(module: ModuleOp, name: str, where: Location | None, text: str, edit: str, facts: Facts | None = None,
            maker: str = "", change: Change | None = None) -> None:
    """Say what an optimisation looked at and left: the arguments are those of ``done``, the text is why, with sizes, and
    ``edit`` the change to the author's text with which it is done, ``change`` the same as data."""
    tell(module, Remark(maker or name, REFUSED, name, where, text, edit, facts, change))


def place(location: LocationAttr) -> LocationAttr:
    """A location without the remarks that may be in it."""
    if not (isinstance(location, FusedLoc) and isinstance(location.metadata, RemarkAttr)):
        return location
    assert isinstance(location.locations, ArrayAttr)
    inner: LocationAttr = location.locations.data[0]
    return inner


def collected(module: ModuleOp) -> str:
    """The remarks of a module as text, by the numbers of their operations in it; the module itself is the first."""
    found = {number: [as_data(each) for each in _carried(op)] for number, op in enumerate(module.walk())}
    return json.dumps({number: said for number, said in found.items() if said})


def restore(module: ModuleOp, text: str) -> None:
    """Give a module that was printed and read again the remarks that it had."""
    said = json.loads(text)
    for number, op in enumerate(module.walk()):
        if str(number) in said:
            _carry(op, tuple(_read(Remark, each) for each in said[str(number)]))
