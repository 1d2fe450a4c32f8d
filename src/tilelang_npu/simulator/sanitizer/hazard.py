"""Hazards as data and as text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

from tilelang_npu.errors import Location

Kind = Literal["RAW", "WAR", "WAW", "flag", "address", "unwritten", "blank", "left over", "padding"]
_TEXTS = {
    "RAW": ("are read while they may not be written yet", "read after write", ("write", "read")),
    "WAR": ("are overwritten while they may still be read", "write after read", ("read", "write")),
    "WAW": ("are written twice in no order", "write after write", ("write", "write")),
    "flag": ("", "", ("set", "set")),
    "address": ("", "", ("begins", "")),
    "padding": ("", "", ("folds", "fills")),
    "unwritten": ("are read though nothing in the block wrote them", "unwritten", ("read", "store")),
    "blank": ("are read though no launch wrote them", "unwritten", ("read", "store")),
    "left over": ("are read though another buffer left them", "left over", ("read", "store")),
}
"""For each kind: the predicate, the formal term, and the verbs of both sites."""
_STALE = ("unwritten", "blank", "left over")
CODES = {
    "S201": "race inside a core",
    "S202": "race between the cores of a block",
    "S203": "race between blocks",
    "S211": "flag that is set and never waited for",
    "S212": "event that is set again before it was waited for",
    "S213": "flag with more sets outstanding than it counts",
    "S214": "flag that is set or waited for by two pipes in no order",
    "S221": "result of bytes that nothing wrote",
    "S222": "result of bytes that another buffer left",
    "S223": "op that begins at an address at which it cannot",
    "S224": "reduction that padding decides",
}
"""The hazards by code."""
_WIDTH = 60
"""Most characters of a source line that a report shows."""


class Site(NamedTuple):
    """One of the two ops of a hazard: its name, line, pipe, core, and how often it had run before.

    ``number`` is its position among the ops of its core in program order, from 0.
    """

    op: str
    location: Location | None
    pipe: str
    core: str
    iteration: int
    operand: str = ""
    number: int = -1

    def __str__(self) -> str:
        return f"{self.op} at {self.location or '?'}, {self.pipe} of {self.core}, iteration {self.iteration}"

    def row(self, verb: str) -> tuple[str, str, str, str]:
        """Returns the columns of a report: the verb, the place, the source line, the pipe and core."""
        text = self.location.source().strip() if self.location is not None else ""
        shown = text if len(text) <= _WIDTH else text[:_WIDTH - 1] + "…"
        where = self.location.shown_line if self.location is not None else self.op
        return verb, where, shown or self.op, f"{self.pipe} of {self.core}, iteration {self.iteration}"


@dataclass(frozen=True)
class Hazard:
    """Two accesses without order, or an error in the use of flags, addresses or uninitialised bytes.

    Attributes:
        code: one of :data:`CODES`.
        kind: read after write, write after read, write after write; ``flag``; ``address``; ``unwritten``;
            ``blank``; ``left over``; or ``padding``.
        first: the earlier op in program order; for a flag the set; for uninitialised bytes the read; for padding the reduction
            or product.
        second: the later op, or None; for uninitialised bytes the store of the result; for padding the load.
        memory: ``UB``, ``L1``, ``L0C`` or ``GM``; empty for a flag.
        start, end: the common bytes are ``start..end-1``; in GM counted from the tensor's start.
        missing: what would order the accesses; for a flag the error; for uninitialised bytes the result that depends on them.
        block: the block in which it was found.
        buffer: the name of the bytes' buffer; empty where unknown.
        near: synchronisation that almost orders the accesses.
        flag: for a flag its name, and its receiver: the pipe of an event, the core of a flag between cores.
        barriers: whether the core has barriers of all pipes: a missing one leaves pairs of several pipes unordered.
        hand_over: for S202 the number of the hand-over among those between the same pipes: one flag orders one of them.
    """

    code: str
    kind: Kind
    first: Site
    second: Site | None
    memory: str
    start: int
    end: int
    missing: str
    block: int
    buffer: str = ""
    near: str = ""
    flag: tuple[str, str] = ("", "")
    barriers: bool = False
    hand_over: int = 0

    @property
    def key(self) -> tuple[object, ...]:
        """A key that is equal for the same error in another iteration or block."""
        places = [(site.op, site.location, site.pipe, site.core[:3]) for site in (self.first, self.second) if site is not None]
        return (self.kind, self.memory, *places, self.missing)

    def __str__(self) -> str:
        predicate, formal, verbs = _TEXTS[self.kind]
        if self.kind in ("flag", "address", "padding"):
            head = f"{self.kind}[{self.code}]: {self.missing}"
        else:
            name = f" of {self.buffer}" if self.buffer else ""
            word = "stale" if self.kind in _STALE else "race"
            head = f"{word}[{self.code}]: {self.memory} bytes {self.start}..{self.end - 1}{name} {predicate} ({formal})"
        sites = [site for site in (self.first, self.second) if site is not None]
        rows = [site.row(verb) for site, verb in zip(sites, verbs, strict=False)]
        widths = [max(len(row[column]) for row in rows) for column in range(3)]
        lines = [head, *("  " + "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=False)) + "  " + row[3]
                         for row in rows)]
        if self.kind in _STALE:
            lines.append(f"  {self.missing}")
        elif self.kind not in ("flag", "address", "padding"):
            lines.append(f"  missing {self.missing}")
        if self.near:
            lines.append(f"          ({self.near})")
        return "\n".join(lines)
