"""The cores of a launch that run side by side, and the flags between them.

A core is a coroutine that runs until it waits for a flag nobody has set yet. Flags count: a set adds one on every core that
it concerns, once all that must set it have; a wait takes one off.

====== ================================== =====================================
group  who must set                       who gets it (FFTS mode)
====== ================================== =====================================
pair   the AIC; or all AIVs of the block  its AIVs; or its AIC (2)
sub    all AIVs of the block              they themselves (1)
kind   all AICs, or all AIVs              they themselves (0)
all    every core                         every core (sync_block ALL)
====== ================================== =====================================
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from typing import NamedTuple

from tilelang_npu.errors import TileError
from tilelang_npu.simulator.events import OpRecord


class CoreId(NamedTuple):
    """A core of a launch: the block it works on, its kind and its number within the block."""

    block: int
    kind: str
    sub: int = 0

    @property
    def label(self) -> str:
        """``AIC``, ``AIV0`` or ``AIV1``."""
        return self.kind if self.kind == "AIC" else f"AIV{self.sub}"


class Rendezvous:
    """Who must set a flag before whom it releases.

    Args:
        cores: all cores that run together.
    """

    def __init__(self, cores: Iterable[CoreId]) -> None:
        self._cores = tuple(cores)
        self._arrived: dict[tuple[object, ...], dict[CoreId, list[object]]] = {}
        self._groups: dict[tuple[CoreId, str], tuple[tuple[object, ...], tuple[CoreId, ...], tuple[CoreId, ...]]] = {}

    def _group(self, core: CoreId, group: str) -> tuple[tuple[object, ...], tuple[CoreId, ...], tuple[CoreId, ...]]:
        found = self._groups.get((core, group))
        if found is not None:
            return found
        near = tuple(other for other in self._cores if other.block == core.block)
        if group == "pair":
            members = tuple(other for other in near if other.kind == core.kind)
            receivers = tuple(other for other in near if other.kind != core.kind)
            key: tuple[object, ...] = (group, core.block, core.kind)
        elif group == "sub":
            members = receivers = tuple(other for other in near if other.kind == core.kind)
            key = (group, core.block)
        elif group == "kind":
            members = receivers = tuple(other for other in self._cores if other.kind == core.kind)
            key = (group, core.kind)
        else:
            members = receivers = self._cores
            key = (group,)
        self._groups[core, group] = key, members, receivers
        return key, members, receivers

    def arrive(self, core: CoreId, flag: int, group: str, token: object = None) -> tuple[tuple[CoreId, ...], list[object]]:
        """A core sets a flag.

        Returns:
            The cores whose count grows by one, and the tokens of the sets that made it grow; both empty while other
            cores' sets are still missing.
        """
        key, members, receivers = self._group(core, group)
        if len(members) == 1:
            return receivers, [token]
        waiting = self._arrived.setdefault((*key, flag), {member: [] for member in members})
        waiting[core].append(token)
        if all(waiting.values()):
            return receivers, [tokens.pop(0) for tokens in waiting.values()]
        return (), []

    def missing(self, core: CoreId, flag: int) -> list[CoreId]:
        """Cores whose set is still missing where another core of their group has set the flag already."""
        found: list[CoreId] = []
        for key, waiting in self._arrived.items():
            if key[-1] == flag and any(waiting.values()):
                found += [member for member, tokens in waiting.items() if not tokens and member != core]
        return found


Coroutine = Generator[tuple[int, int], None, None]
FLAGS = 64
"""Counters of a core: the flags a kernel can name and those of ``sync_block``."""


class Flags:
    """The counters of cores that run together."""

    def __init__(self, cores: Sequence[CoreId]) -> None:
        self.counts = {core: [0] * FLAGS for core in cores}
        self.seen = {core: [0] * FLAGS for core in cores}
        self.rendezvous = Rendezvous(cores)

    def setter(self, core: CoreId) -> object:
        """The function that the core's generated code calls to set a flag."""
        counts, seen, arrive = self.counts, self.seen, self.rendezvous.arrive

        def set_flag(flag: int, group: str) -> None:
            for receiver in arrive(core, flag, group)[0]:
                counts[receiver][flag] += 1
                seen[receiver][flag] += 1

        return set_flag


class Running(NamedTuple):
    """A started core."""

    core: CoreId
    coroutine: Coroutine
    records: Sequence[OpRecord]
    events: list[object]


def run_together(running: Sequence[Running], flags: Flags) -> None:
    """Run cores until all are done.

    Raises:
        TileError: S301, the cores that are left wait for flags that nobody will set.
    """
    waiting: dict[CoreId, tuple[int, int]] = {}
    left = list(running)
    while left:
        moved = False
        for one in tuple(left):
            wanted = waiting.get(one.core)
            if wanted is not None and not flags.counts[one.core][wanted[1]]:
                continue
            moved = True
            try:
                waiting[one.core] = next(one.coroutine)
            except StopIteration:
                waiting.pop(one.core, None)
                left.remove(one)
        if not moved:
            raise deadlock(left, waiting, flags)


def deadlock(left: Sequence[Running], waiting: dict[CoreId, tuple[int, int]], flags: Flags) -> TileError:
    """The error for cores that wait for each other or for nobody."""
    notes = []
    for one in left:
        number, flag = waiting[one.core]
        record = one.records[number]
        times = sum(event == number or (isinstance(event, tuple) and event[0] == number) for event in one.events)
        seen = flags.seen[one.core][flag]
        missing = flags.rendezvous.missing(one.core, flag)
        setters = f"; still to set it: {', '.join(sorted({core.label for core in missing}))}" if missing else ""
        notes.append(f"{one.core.label}  {record.location or record.name}  {record.mnemonic} flag {flag} on {record.pipe}   "
                     f"iteration {times - 1}   {seen} sets seen, this is wait {seen + 1}{setters}")
    labels = [one.core.label for one in left]
    blocks = sorted({one.core.block for one in left})
    who = " and ".join(labels[:3]) + (" and others" if len(labels) > 3 else "")
    verb = "waits for a flag that nobody sets" if len(labels) == 1 else "wait for each other"
    first = left[0].records[waiting[left[0].core][0]]
    return TileError(f"block {', '.join(map(str, blocks[:4]))}: {who} {verb}", code="S301", location=first.location,
                     notes=notes, help="every wait needs its set on the other core, and on both AIVs where the AIC waits")
