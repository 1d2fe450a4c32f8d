"""The cores of a launch that run concurrently, and the flags between them.

A core is a coroutine that runs until it waits for a flag that is not set. Flags count: a set adds one on every core that
receives it, once all cores that must set it have done so; a wait subtracts one.

====== ================================== =====================================
group  cores that must set it             cores that receive it (FFTS mode)
====== ================================== =====================================
pair   the AIC; or all AIVs of the block  its AIVs; or its AIC (2)
sub    all AIVs of the block              the same (1)
kind   all AICs, or all AIVs              the same (0)
all    every core                         every core (sync_block ALL)
====== ================================== =====================================
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

MAX_BLOCKS = 65535
"""Most blocks of a launch: the width of the block dimension in the runtime's launch call, which counts AI cores (see
``blocks_per_point`` in ``codegen/control.py``)."""


class CoreId(NamedTuple):
    """A core of a launch: the block that it runs, its kind, and its number within the block."""

    block: int
    kind: str
    sub: int = 0

    @property
    def label(self) -> str:
        """``AIC``, ``AIV0`` or ``AIV1``."""
        return self.kind if self.kind == "AIC" else f"AIV{self.sub}"


class Rendezvous:
    """Matches the sets of a flag by several cores: a flag is received once all members of its group have set it.

    Args:
        cores: all cores that run concurrently.
    """

    def __init__(self, cores: Iterable[CoreId]) -> None:
        self._cores = tuple(cores)
        self._arrived: dict[tuple[object, ...], dict[CoreId, list[object]]] = {}
        self._groups: dict[tuple[CoreId, str], tuple[tuple[object, ...], tuple[CoreId, ...], tuple[CoreId, ...]]] = {}

    def group(self, core: CoreId, group: str) -> tuple[tuple[object, ...], tuple[CoreId, ...], tuple[CoreId, ...]]:
        """Returns a key for the group of cores, its members that must set a flag, and the cores that receive it."""
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
        """Records that a core sets a flag.

        Returns:
            The cores that receive it, and the tokens of the sets that complete it; both empty while sets of other members are
            missing.
        """
        key, members, receivers = self.group(core, group)
        if len(members) == 1:
            return receivers, [token]
        waiting = self._arrived.setdefault((*key, flag), {member: [] for member in members})
        waiting[core].append(token)
        if all(waiting.values()):
            return receivers, [tokens.pop(0) for tokens in waiting.values()]
        return (), []

    def pending(self, key: tuple[object, ...], flag: int) -> Mapping[CoreId, Sequence[object]]:
        """Returns the incomplete sets of a flag by core; empty where there was none."""
        return self._arrived.get((*key, flag), {})


Coroutine = Generator[tuple[int, int], None, None]
FLAGS = 64
"""Counters of a core: the flags that a kernel can name and those of ``sync_block``."""
BARRIER_FLAG = 16
"""Flag of a ``sync_block`` without a number; above those that a kernel can name."""
PASSED_WAITS = 1000
"""Waits that a core which hangs skips, to record the ops after them."""


class Flags:
    """The flag counters of cores that run concurrently."""

    def __init__(self, cores: Sequence[CoreId]) -> None:
        self.counts = {core: [0] * FLAGS for core in cores}
        self.rendezvous = Rendezvous(cores)

    def setter(self, core: CoreId) -> Callable[[int, str], None]:
        """Returns the function that the core's generated code calls to set a flag."""
        counts, arrive = self.counts, self.rendezvous.arrive

        def set_flag(flag: int, group: str) -> None:
            for receiver in arrive(core, flag, group)[0]:
                counts[receiver][flag] += 1

        return set_flag


class Running(NamedTuple):
    """A started core."""

    core: CoreId
    coroutine: Coroutine


def run_coroutines(running: Sequence[Running], flags: Flags) -> bool:
    """Runs cores until all have finished, or the remaining ones wait for flags that no core sets.

    In the second case they continue for a while as if the flags were set, so that the ops are recorded which they would issue;
    the values are then meaningless.

    Returns:
        Whether all cores finished.
    """
    waiting: dict[CoreId, int] = {}
    left = list(running)
    while left:
        moved = False
        for one in tuple(left):
            wanted = waiting.get(one.core)
            if wanted is not None and not flags.counts[one.core][wanted]:
                continue
            moved = True
            try:
                waiting[one.core] = next(one.coroutine)[1]
            except StopIteration:
                waiting.pop(one.core, None)
                left.remove(one)
        if not moved:
            _go_on(left, waiting, flags)
            return False
    return True


def _go_on(left: Sequence[Running], waiting: Mapping[CoreId, int], flags: Flags) -> None:
    """Lets cores continue as if every flag were set."""
    for one in left:
        wanted = waiting[one.core]
        with suppress(Exception):  # the values are meaningless, and so are errors that follow from them
            for _ in range(PASSED_WAITS):
                flags.counts[one.core][wanted] += 1
                wanted = next(one.coroutine)[1]
