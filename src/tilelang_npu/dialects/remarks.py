"""What a pass decided, carried by the operation that it made.

A remark stands beside the operation's source location, as the metadata of a fused one. There it is copied wherever the
operation is, whatever passes come later; no text shows it, and the kernel cache keeps it next to the text. Reports read it, so
that none of them has to find out again what a pass has known.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from xdsl.dialects.builtin import ArrayAttr, FusedLoc, LocationAttr, ModuleOp
from xdsl.ir import Attribute, Data, Operation
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer

from tilelang_npu.errors import Location

__all__ = ["Remark", "RemarkAttr", "Touched", "WaitReason", "collected", "place", "remark", "remark_of", "restore"]


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
class Remark:
    """Why an operation that synchronises was made. One without a remark is the author's.

    Attributes:
        maker: the pass.
        why: in words, where it is not for accesses.
        reasons: the accesses that it is for; a barrier may be for several pairs.
        source, target: the pipes, the same for a barrier; between the cores ``AIC.FIX`` and the like.
        numbers: the event's or flag's numbers, which iterations take in turn.
        before: the line in front of which it waits.
        behind: it stands behind the loop of the one that waits there, and takes back what the last iterations have left.
    """

    maker: str
    why: str = ""
    reasons: tuple[WaitReason, ...] = ()
    source: str = ""
    target: str = ""
    numbers: tuple[int, ...] = ()
    before: Location | None = None
    behind: bool = False


def _read(given: Mapping[str, Any]) -> Remark:
    """The remark of its fields."""
    def line(found: Mapping[str, Any] | None) -> Location | None:
        return None if found is None else Location(**found)

    def touched(found: Mapping[str, Any]) -> Touched:
        return Touched(found["name"], line(found["line"]), found["writes"])

    reasons = tuple(WaitReason(one["kind"], touched(one["first"]), touched(one["second"]), one["size"], one["distance"])
                    for one in given["reasons"])
    return Remark(given["maker"], given["why"], reasons, given["source"], given["target"], tuple(given["numbers"]),
                  line(given["before"]), given["behind"])


@irdl_attr_definition
class RemarkAttr(Data[Remark]):
    """A remark as metadata of a location."""

    name = "tile.remark"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Remark:
        with parser.in_angle_brackets():
            return _read(json.loads(parser.parse_str_literal()))

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string_literal(json.dumps(asdict(self.data)))


def remark(op: Operation, said: Remark) -> None:
    """Let an operation carry a remark, in place of one that it may have."""
    inner: Attribute = place(op.location)
    op.location = FusedLoc(ArrayAttr([inner]), RemarkAttr(said))


def remark_of(op: Operation) -> Remark | None:
    """The remark that an operation carries."""
    where = op.location
    return where.metadata.data if isinstance(where, FusedLoc) and isinstance(where.metadata, RemarkAttr) else None


def place(location: LocationAttr) -> LocationAttr:
    """A location without the remark that may be in it."""
    if not (isinstance(location, FusedLoc) and isinstance(location.metadata, RemarkAttr)):
        return location
    assert isinstance(location.locations, ArrayAttr)
    inner: LocationAttr = location.locations.data[0]
    return inner


def collected(module: ModuleOp) -> str:
    """The remarks of a module as text, by the numbers of their operations in it."""
    found = {number: remark_of(op) for number, op in enumerate(module.walk())}
    return json.dumps({number: asdict(said) for number, said in found.items() if said is not None})


def restore(module: ModuleOp, text: str) -> None:
    """Give a module that was printed and read again the remarks that it had."""
    said = json.loads(text)
    for number, op in enumerate(module.walk()):
        if str(number) in said:
            remark(op, _read(said[str(number)]))
