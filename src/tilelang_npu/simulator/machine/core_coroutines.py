"""The cores of a launch that run concurrently, and the flags between them.

A core is a coroutine that runs until it waits for a flag that is not set. Each core has a counter for each flag. A set
increments the counter on every core of a group that receives the flag, once all cores of the group that must set the flag have
set it. A wait decrements the counter of the waiting core.

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

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import NamedTuple

from tilelang_npu.card_signals import CardWait, wait_for_cards
from tilelang_npu.target.chip_data import CoreKind

MAX_BLOCKS = 65535
"""Limit of the blocks of a launch, which is the largest value of the block dimension in the runtime's launch call.

The runtime counts blocks per AI core; a Vector kernel can have several blocks for each (``blocks_per_point`` in
``codegen/control.py``)."""


class CoreId(NamedTuple):
    """Identifies a core of a launch.

    Attributes:
        block: the index of the block that the core runs.
        kind: ``AIC`` or ``AIV``.
        sub: the number of the core among those of its kind in the block.
    """

    block: int
    kind: CoreKind
    sub: int = 0

    @property
    def label(self) -> str:
        """The name of the core within its block: ``AIC``, ``AIV0``, ``AIV1`` ..."""
        return self.kind if self.kind == "AIC" else f"AIV{self.sub}"


class Rendezvous:
    """Combines the sets of one flag by several cores: the receiving cores get the flag once all setting cores have set it.

    Args:
        cores: all cores that run concurrently.
    """

    def __init__(self, cores: Iterable[CoreId]) -> None:
        self._cores = tuple(cores)
        self._arrived: dict[tuple[object, ...], dict[CoreId, list[object]]] = {}
        self._groups: dict[tuple[CoreId, str], tuple[tuple[object, ...], tuple[CoreId, ...], tuple[CoreId, ...]]] = {}

    def group(self, core: CoreId, group: str) -> tuple[tuple[object, ...], tuple[CoreId, ...], tuple[CoreId, ...]]:
        """Returns the group of cores that a set of a flag involves.

        Args:
            core: the core that sets the flag.
            group: ``pair``, ``sub``, ``kind`` or ``all``, as in the table of this module.

        Returns:
            a key of the group, the cores that must set the flag, and the cores that receive it.
        """
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

        Args:
            core: the core.
            flag: the number of the flag.
            group: the cores involved, as for ``group``.
            token: any object that identifies this set.

        Returns:
            the cores that receive the flag now, and the tokens of the sets by all members; both are empty if a member has not
            set the flag yet.
        """
        key, members, receivers = self.group(core, group)
        if len(members) == 1:
            return receivers, [token]
        waiting = self._arrived.setdefault((*key, flag), {member: [] for member in members})
        waiting[core].append(token)
        if all(waiting.values()):
            return receivers, [tokens.pop(0) for tokens in waiting.values()]
        return (), []

    def waiting(self) -> Iterator[tuple[tuple[object, ...], list[object]]]:
        """Yields the tokens of the sets that wait for other cores, by a key of the flag and the core that set it."""
        for key, members in self._arrived.items():
            for core, tokens in members.items():
                if tokens:
                    yield (*key, core), tokens

    def pending(self, key: tuple[object, ...], flag: int) -> Mapping[CoreId, Sequence[object]]:
        """Returns the sets of a flag that are not complete, because other cores of the group have not set the flag as often.

        The result has, for each core of the group that has set the flag, the token of each such set, in order. A token is the
        object that the core passed when it set the flag.

        Args:
            key: the key of the group, from ``group``.
            flag: the number of the flag.
        """
        return self._arrived.get((*key, flag), {})


Coroutine = Generator[tuple[int, int | CardWait], None, None]
FLAGS = 64
"""Number of flag counters of a core: for the flags that a kernel can name, and for those that ``sync_block`` uses."""
BARRIER_FLAG = 16
"""The flag that a ``sync_block`` without a number uses; its number is larger than those that a kernel can name."""
PASSED_WAITS = 1000
"""Number of waits that a core which hangs skips, so that the ops after them are recorded."""


class Flags:
    """The flag counters of cores that run concurrently.

    Args:
        cores: the cores.

    Attributes:
        counts: for each core, the counter of each flag by its number.
        rendezvous: combines the sets of several cores.
    """

    def __init__(self, cores: Sequence[CoreId]) -> None:
        self.counts = {core: [0] * FLAGS for core in cores}
        self.rendezvous = Rendezvous(cores)

    def setter(self, core: CoreId) -> Callable[[int, str], None]:
        """Returns the function that the core's generated code calls with a flag and a group to set the flag."""
        counts, arrive = self.counts, self.rendezvous.arrive

        def set_flag(flag: int, group: str) -> None:
            for receiver in arrive(core, flag, group)[0]:
                counts[receiver][flag] += 1

        return set_flag


class Running(NamedTuple):
    """A core with the coroutine that runs its code.

    The coroutine yields ``(number of the record, flag)`` at each wait for a flag, and ``(number of the record, wait)`` at each
    wait for another card.
    """

    core: CoreId
    coroutine: Coroutine


def run_coroutines(running: Sequence[Running], flags: Flags) -> bool:
    """Runs cores until all have finished, or until the remaining cores hang: each waits for a flag that no core sets.

    If no core can go on, and some wait for other cards, the thread waits until another card has brought one of these waits to
    its end.

    Cores that hang then skip up to ``PASSED_WAITS`` waits each, so that the ops after these waits are recorded for the error
    message. The values that these ops compute are meaningless.

    Args:
        running: the cores.
        flags: their flag counters.

    Returns:
        whether all cores finished.

    Raises:
        TileError: S308, the other cards do not bring a wait to its end.
    """
    waiting: dict[CoreId, int | CardWait] = {}
    left = list(running)
    while left:
        moved = False
        for one in tuple(left):
            wanted = waiting.get(one.core)
            if wanted is not None and not (
                    wanted.ready() if isinstance(wanted, CardWait) else flags.counts[one.core][wanted]):
                continue
            moved = True
            try:
                waiting[one.core] = next(one.coroutine)[1]
            except StopIteration:
                waiting.pop(one.core, None)
                left.remove(one)
        if not moved and (waits := [wanted for wanted in waiting.values() if isinstance(wanted, CardWait)]):
            wait_for_cards(waits, partial(_go_on, left, waiting, flags))
        elif not moved:
            _go_on(left, waiting, flags)
            return False
    return True


def _go_on(left: Sequence[Running], waiting: Mapping[CoreId, int | CardWait], flags: Flags) -> None:
    """Continues the cores that hang as if every flag were set, for at most ``PASSED_WAITS`` waits of each core."""
    for one in left:
        wanted = waiting[one.core]
        with suppress(Exception):  # the values are meaningless, and so are errors that follow from them
            for _ in range(PASSED_WAITS):
                if not isinstance(wanted, CardWait):
                    flags.counts[one.core][wanted] += 1
                wanted = next(one.coroutine)[1]
