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

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

MAX_BLOCKS = 65535
"""Most blocks of a launch: the width of the block dimension in the runtime's launch call, which counts AI cores (see
``codegen/blocks_per_point.py``)."""


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

    def group(self, core: CoreId, group: str) -> tuple[tuple[object, ...], tuple[CoreId, ...], tuple[CoreId, ...]]:
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
        key, members, receivers = self.group(core, group)
        if len(members) == 1:
            return receivers, [token]
        waiting = self._arrived.setdefault((*key, flag), {member: [] for member in members})
        waiting[core].append(token)
        if all(waiting.values()):
            return receivers, [tokens.pop(0) for tokens in waiting.values()]
        return (), []

    def pending(self, key: tuple[object, ...], flag: int) -> Mapping[CoreId, Sequence[object]]:
        """Per core of a group its sets of a flag that wait for those of others; empty where none ever did."""
        return self._arrived.get((*key, flag), {})


Coroutine = Generator[tuple[int, int], None, None]
FLAGS = 64
"""Counters of a core: the flags a kernel can name and those of ``sync_block``."""
BARRIER_FLAG = 16
"""Flags of ``sync_block`` without a number; above those that a kernel can name."""
PASSED_WAITS = 1000
"""Waits that a core which hangs passes by, to see what would come behind them."""


class Flags:
    """The counters of cores that run together."""

    def __init__(self, cores: Sequence[CoreId]) -> None:
        self.counts = {core: [0] * FLAGS for core in cores}
        self.rendezvous = Rendezvous(cores)

    def setter(self, core: CoreId) -> Callable[[int, str], None]:
        """The function that the core's generated code calls to set a flag."""
        counts, arrive = self.counts, self.rendezvous.arrive

        def set_flag(flag: int, group: str) -> None:
            for receiver in arrive(core, flag, group)[0]:
                counts[receiver][flag] += 1

        return set_flag


class Running(NamedTuple):
    """A started core."""

    core: CoreId
    coroutine: Coroutine


def run_together(running: Sequence[Running], flags: Flags) -> bool:
    """Run cores until all are done, or those that are left wait for flags that nobody sets.

    In the second case these go on for a while without them, so that all ops are known which they would issue; what they
    compute then is void.

    Returns:
        Whether all came to their ends by themselves.
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
    """Let cores run on as if every flag were set."""
    for one in left:
        wanted = waiting[one.core]
        with suppress(Exception):  # garbage in, garbage out: an error of a core that should not be running is no news
            for _ in range(PASSED_WAITS):
                flags.counts[one.core][wanted] += 1
                wanted = next(one.coroutine)[1]
