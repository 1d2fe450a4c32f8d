"""``Hazard``, the result of the sanitizer: a fault between two ops, or of one op, as data and as a text report."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

from tilelang_npu.errors import Location
from tilelang_npu.target.chip_data import Pipe

if TYPE_CHECKING:
    from tilelang_npu.diagnostic_codes import Code

Kind = Literal["RAW", "WAR", "WAW", "flag", "address", "unwritten", "blank", "left over", "padding"]
_TEXTS = {
    "RAW": ("are read, but nothing orders the read after the write", "read after write", ("write", "read")),
    "WAR": ("are overwritten, but nothing orders the write after the read", "write after read", ("read", "write")),
    "WAW": ("are written twice, but nothing orders the two writes", "write after write", ("write", "write")),
    "flag": ("", "", ("set", "set")),
    "address": ("", "", ("begins", "")),
    "padding": ("", "", ("uses", "fills")),
    "unwritten": ("are read though nothing in the block wrote them", "unwritten", ("read", "store")),
    "blank": ("are read though no launch wrote them", "unwritten", ("read", "store")),
    "left over": ("are read though they hold data of another buffer", "left over", ("read", "store")),
}
"""For each kind of hazard: the predicate of the report's first line, the formal term, and the verbs for the two ops."""
_STALE = ("unwritten", "blank", "left over")
CODES = {
    "S201": "race inside a core",
    "S202": "race between the cores of a block",
    "S203": "race between blocks",
    "S211": "flag that is set and never waited for",
    "S212": "event that is set again before it was waited for",
    "S213": "flag with more outstanding sets than it can count",
    "S214": "flag that two pipes set, or wait for, without an order between them",
    "S221": "result that depends on bytes that nothing wrote",
    "S222": "result that depends on bytes of another buffer",
    "S223": "op that begins at a misaligned address",
    "S224": "reduction or product that padding changes",
}
"""A short description of each hazard code."""
_WIDTH = 60
"""Maximum number of characters of a source line that a report shows."""


class Site(NamedTuple):
    """An op of a hazard.

    Attributes:
        op: the name of the op.
        location: the source line of the op; None if unknown.
        pipe: the pipe that makes the access.
        core: the core that executes the op, such as ``AIV0``.
        iteration: how often the core had executed the op before.
        operand: the role of the accessed operand in the op, such as ``src``; empty if the fault is not about an operand.
        number: the position of the op among the ops of its core's program, counted from 0; -1 if unknown.
    """

    op: str
    location: Location | None
    pipe: Pipe | Literal[""]
    core: str
    iteration: int
    operand: str = ""
    number: int = -1

    def __str__(self) -> str:
        return f"{self.op} at {self.location or '?'}, {self.pipe} of {self.core}, iteration {self.iteration}"

    def row(self, verb: str) -> tuple[str, str, str, str]:
        """Returns the columns of the op's row in a report: the verb, the source line, its text, and the pipe and core."""
        text = self.location.source().strip() if self.location is not None else ""
        shown = text if len(text) <= _WIDTH else text[:_WIDTH - 1] + "…"
        where = f"{self.location.shown_line}{self.location.calls}" if self.location is not None else self.op
        return verb, where, shown or self.op, f"{self.pipe} of {self.core}, iteration {self.iteration}"


@dataclass(frozen=True)
class Hazard:
    """A fault that the sanitizer found: two accesses that nothing orders (a race), or wrong use of flags, addresses,
    uninitialised bytes or padding.

    Attributes:
        code: a key of :data:`CODES`.
        kind: the kind of fault. Races: ``RAW`` (read after write), ``WAR`` (write after read), ``WAW`` (write after write).
            ``flag``: wrong use of an event or flag. ``address``: a misaligned address. Reads whose bytes reach a result:
            ``unwritten`` (nothing in the block wrote these on-chip bytes), ``blank`` (no launch wrote these elements of a
            tensor), ``left over`` (another buffer wrote these bytes). ``padding``: padding changes a reduction or product.
        first: for a race the access that comes first in program order; for a flag the set; for uninitialised bytes the read;
            for padding the reduction or product.
        second: for a race the other access; for uninitialised bytes the store of a result that depends on them; for padding
            the op that filled it in; None if there is no second op.
        memory: ``UB``, ``L1``, ``L0C`` or ``GM``; empty for a flag.
        start: the offset of the first byte that both accesses contain, in the memory; in GM, from the start of the tensor.
        end: the offset after the last such byte. Both are 0 for a flag and for padding.
        missing: for a race the synchronisation that would order the accesses; for a flag, an address or padding the message;
            for uninitialised bytes the result that depends on them.
        block: the number of the block in which the fault was found.
        buffer: the name of the buffer or tensor that the bytes belong to; empty if unknown.
        near: a remark on synchronisation that almost orders the accesses, or on the repair; empty for none. For uninitialised
            bytes it is shown as help.
        flag: for a fault of a flag, the name of the flag, and the pipe (of an event) or the core (of a flag between cores) that
            should wait for it.
        barriers: whether the second op's core executes barriers of all pipes. One missing barrier then leaves accesses of
            several pairs of pipes unordered.
        hand_over: for S202, the number of the transfer between cores that the race belongs to, counted among the transfers
            between the same pipes of the same cores. One flag orders one transfer.
    """

    code: Code
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
        """A key that is equal for the same fault in other iterations, blocks, or cores of the same kind."""
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
            lines.append(f"  help: {self.near}" if self.kind in _STALE else f"          ({self.near})")
        return "\n".join(lines)
