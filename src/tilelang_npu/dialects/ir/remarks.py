"""Remarks: records of the decisions of passes, stored in the locations of operations.

A remark records one thing that a pass did, or considered and refused: the pass, the optimisation, the source line, a text, and
the facts of the text as data. The location of an operation holds the remark about this operation, as the metadata of a fused
location. Later passes copy the remark when they copy the operation. A macro operation, such as ``mmadL1``, sets and waits for
events itself. The numbers of these events are among its operands, and the operation has a remark for each event. The
location of the module holds, in the order of the decisions, the remarks about operations that no longer
exist or were never created, such as a removed copy or a loop that was not pipelined. The text of a module does not show
remarks; the kernel cache stores them next to the text. Reports read the remarks, so that no report has to repeat the analysis
of a pass.
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
from tilelang_npu.target.chip_data import BufferSpace

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
"""The kinds of remarks. ``made``: the reason why a pass created an operation. ``done``: an optimisation that a pass applied.
``refused``: an optimisation that a pass considered and did not apply."""


@dataclass(frozen=True)
class Touched:
    """One of the two accesses of a dependence that a wait or a barrier enforces.

    Attributes:
        name: the name of the accessed buffer.
        line: the source line of the access.
        writes: whether the access is a write.
    """

    name: str
    line: Location | None
    writes: bool


@dataclass(frozen=True)
class WaitReason:
    """A dependence between two accesses that a wait or a barrier enforces.

    Attributes:
        kind: the kind of the dependence: ``RAW``, ``WAR`` or ``WAW``.
        first: the earlier access.
        second: the later access.
        size: the number of bytes that both accesses can touch.
        distance: the iteration distance of the dependence; 0 within one iteration.
    """

    kind: str
    first: Touched
    second: Touched
    size: int
    distance: int


@dataclass(frozen=True)
class Waits:
    """The purpose of a synchronisation: an operation that sets an event, waits for one, or is a barrier.

    Attributes:
        reasons: the dependences that the synchronisation enforces; a barrier may enforce several.
        source: the pipe that is waited for. For a synchronisation between cores the name includes the core: ``AIC.FIX``.
        target: the pipe that waits; the same pipe as ``source`` for a barrier.
        numbers: the numbers of the event or flag. If there are several, successive iterations use them cyclically.
        before: the source line before which the synchronisation waits.
        after_loop: whether the operation is after a loop, and waits for the events that the last iterations have set.
        place: the position of the event among the operands ``sync_related_args`` of the operation; None if the operation is
            itself the set, the wait or the barrier.
    """

    reasons: tuple[WaitReason, ...] = ()
    source: str = ""
    target: str = ""
    numbers: tuple[int, ...] = ()
    before: Location | None = None
    after_loop: bool = False
    place: int | None = None


@dataclass(frozen=True)
class Placed:
    """The buffer, or the slot of a multi-buffer, to which memory planning assigned an address.

    Attributes:
        name: the name of the buffer in the source; ``scratch`` for the temporary buffer of an op.
        number: the number of the buffer in its core's memory; all slots of a multi-buffer have the same number.
        slot: the number of the slot at the address, from 0.
        slots: the number of slots of the buffer; 1 if it is not a multi-buffer.
        nbytes: the number of bytes of one slot.
        space: the memory, in HIVM's spelling.
        room: the number of bytes of the memory that were available to planning.
        span: the first and the last position of the live range, as positions in the program.
        lines: the first and the last source line of the live range; 0 if no operation has a line.
        pinned: whether the author chose the address.
        made_for: for a temporary tile that the compiler made, the name of the author's buffer or tensor whose tile it holds;
            empty for a buffer of the author.
    """

    name: str
    number: int
    slot: int
    slots: int
    nbytes: int
    space: BufferSpace
    room: int
    span: tuple[int, int]
    lines: tuple[int, int]
    pinned: bool = False
    made_for: str = ""


@dataclass(frozen=True)
class Points:
    """How the compiler executes a ``T.Parallel``, or a part of the iteration space of one.

    Attributes:
        extents: the extent of each axis; a dynamic extent is None.
        starts: the first index of each axis, for a part of the iteration space; empty for the whole iteration space.
        ops: the names of the vector operations, except copies and fills; empty if a scalar loop computes the points one by one.
        unaligned: for each operand that is not aligned to a 32-byte block of UB, a text that says how it is accessed.
        rearranged: for each operand whose elements are first rearranged into the order of the axes, a text that names the
            operand and the rearranging operation.
        rows: the number of rows per iteration of a scalar loop around the vector operations; 0 without such a loop.
        lacking: the bytes that vector operations on all points would need beyond those that are free in UB, where for this
            reason the points are computed one by one, or some rows at a time; else 0.
        cycles: the modelled cycles of the scalar loop over all points, without waits for GM; 0 where vector operations compute
            the points, or would take longer, or are switched off, or where an extent is dynamic.
    """

    extents: tuple[int | None, ...]
    starts: tuple[int, ...] = ()
    ops: tuple[str, ...] = ()
    unaligned: tuple[str, ...] = ()
    rearranged: tuple[str, ...] = ()
    rows: int = 0
    lacking: int = 0
    cycles: int = 0


@dataclass(frozen=True)
class Scoped:
    """The memories that the compiler chose for a buffer of the source.

    Attributes:
        label: the name of the buffer in the source.
        spaces: the memories, in HIVM's spelling; a buffer with several memories has a copy in each.
    """

    label: str
    spaces: tuple[BufferSpace, ...]


@dataclass(frozen=True)
class Turns:
    """A pipelined loop and its multi-buffers.

    Attributes:
        stages: the ``num_stages`` of the loop in the source.
        labels: the names of the multi-buffers in the source.
        spaces: the memory of each multi-buffer, in HIVM's spelling.
        places: the source line of the allocation of each multi-buffer.
    """

    stages: int
    labels: tuple[str, ...]
    spaces: tuple[BufferSpace, ...]
    places: tuple[Location | None, ...] = ()


@dataclass(frozen=True)
class Held:
    """The buffers because of which an optimisation was refused.

    Attributes:
        labels: the names of the buffers in the source.
        space: the memory of the buffers, in HIVM's spelling.
        shared: whether the buffers share bytes, so that accesses to one must wait for accesses to another.
        bytes_alone: whether the refusal costs only memory. It then costs time only if the memory is otherwise full.
    """

    labels: tuple[str, ...]
    space: BufferSpace
    shared: bool = False
    bytes_alone: bool = False


@dataclass(frozen=True)
class Strips:
    """Statements whose tiles do not fit at once, and that are therefore executed for strips of the tiles.

    Attributes:
        count: the number of strips.
        size: the number of rows or columns of a strip; the last strip may have fewer.
        extent: the number of rows or columns of the tiles.
        unit: ``rows`` or ``columns``.
    """

    count: int
    size: int
    extent: int
    unit: str


Facts = Waits | Placed | Points | Scoped | Turns | Held | Strips
_KINDS = {kind.__name__: kind for kind in (*get_args(Facts), *get_args(Change))}


@dataclass(frozen=True)
class Remark:
    """A record of one decision of a pass.

    Attributes:
        maker: the name of the pass.
        kind: ``MADE``, ``DONE`` or ``REFUSED``.
        about: the name of the optimisation; empty if the decision does not belong to an optimisation.
        place: the source line; None for a remark on an operation, whose location has the line, and for a remark that belongs
            to no line.
        text: the decision in words.
        edit: the change to the source that makes a refused optimisation possible, in words.
        facts: the decision as data.
        change: the edit as data; None if no tool can apply the edit.
    """

    maker: str
    kind: str = MADE
    about: str = ""
    place: Location | None = None
    text: str = ""
    edit: str = ""
    facts: Facts | None = None
    change: Change | None = None


def remark_as_data(given: Remark) -> dict[str, object]:
    """Returns a remark as a dictionary of JSON values, without the fields that have their default value."""
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
def _hints(kind: type) -> dict[str, object]:
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
    """The attribute that holds the remarks of an operation or a module, as the metadata of a fused location."""

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
    """Stores a remark on an operation and removes all other remarks of the operation."""
    _store(op, (remark,))


def remark_of(op: Operation) -> Remark | None:
    """Returns the remark about the operation itself, not about an event that a macro operation sets or waits for; None if there
    is no such remark.
    """
    return next((remark for remark in _remarks_on(op) if _event_position(remark) is None), None)


def remarks_of(op: Operation) -> tuple[Remark, ...]:
    """Returns all remarks of an operation: the remark about the operation itself, and those about the events that a macro
    operation, such as ``mmadL1``, sets or waits for itself.
    """
    return _remarks_on(op)


def remarks_of_events(op: Operation) -> dict[int, Remark]:
    """Returns the remarks about the events that a macro operation, such as ``mmadL1``, sets or waits for itself.

    The keys are the positions of the events in the operands ``sync_related_args`` of the operation.
    """
    return {position: remark for remark in _remarks_on(op) if (position := _event_position(remark)) is not None}


def _event_position(remark: Remark) -> int | None:
    return remark.facts.place if isinstance(remark.facts, Waits) else None


def add_remark(op: Operation, remark: Remark) -> None:
    """Appends a remark to the remarks of an operation or a module.

    Remarks that belong to no operation are appended to the module. An operation has several remarks only if it is a macro, such
    as ``mmadL1``, that sets events and waits for events itself: it has one remark for each of these events.
    """
    _store(op, (*_remarks_on(op), remark))


def module_remarks(module: ModuleOp, *kinds: type[Facts]) -> Iterator[Remark]:
    """Yields the remarks of a module in the order in which they were added.

    With ``kinds``, yields only the remarks whose facts are instances of one of these classes.
    """
    for each in _remarks_on(module):
        if not kinds or isinstance(each.facts, kinds):
            yield each


def record_done(module: ModuleOp, name: str, where: Location | None, text: str, facts: Facts | None = None,
                maker: str = "") -> None:
    """Adds a remark of kind ``DONE`` to a module: an optimisation was applied.

    Args:
        module: the module.
        name: the name of the optimisation.
        where: the source line that the remark is about; None for the kernel as a whole.
        text: what the optimisation changed, in words.
        facts: the change as data; None if the text says everything.
        maker: the name of the pass, if it differs from the name of the optimisation.
    """
    add_remark(module, Remark(maker or name, DONE, name, where, text, facts=facts))


def record_refusal(module: ModuleOp, name: str, where: Location | None, text: str, edit: str, facts: Facts | None = None,
            maker: str = "", change: Change | None = None) -> None:
    """Adds a remark of kind ``REFUSED`` to a module: an optimisation was considered and not applied.

    Args:
        module: the module.
        name: the name of the optimisation.
        where: the source line that the remark is about; None for the kernel as a whole.
        text: the reason why the optimisation was not applied, in words, with sizes in bytes.
        edit: the change to the source that makes the optimisation possible, in words.
        facts: the reason as data; None if the text says everything.
        maker: the name of the pass, if it differs from the name of the optimisation.
        change: the edit as data, if a tool can apply it.
    """
    add_remark(module, Remark(maker or name, REFUSED, name, where, text, edit, facts, change))


def strip_remarks(location: LocationAttr) -> LocationAttr:
    """Returns the location without the remarks that it holds; returns a location without remarks unchanged."""
    if not (isinstance(location, FusedLoc) and isinstance(location.metadata, RemarkAttr)):
        return location
    assert isinstance(location.locations, ArrayAttr)
    inner: LocationAttr = location.locations.data[0]
    return inner


def remarks_as_json(module: ModuleOp) -> str:
    """Returns all remarks of a module and its operations as JSON text.

    The keys are the positions of the operations in the order of ``module.walk()``, in which the module has position 0.
    """
    found = {number: [remark_as_data(each) for each in _remarks_on(op)] for number, op in enumerate(module.walk())}
    return json.dumps({number: remarks for number, remarks in found.items() if remarks})


def restore_remarks(module: ModuleOp, text: str) -> None:
    """Stores the remarks that :func:`remarks_as_json` returned as ``text`` on the operations of a module.

    The module must be a copy of the one that the remarks came from, such as one that was printed and parsed.
    """
    found = json.loads(text)
    for number, op in enumerate(module.walk()):
        if str(number) in found:
            _store(op, tuple(_read(Remark, each) for each in found[str(number)]))
