"""The bandwidth of global memory that one transfer gets while other cores use global memory too.

A byte comes from HBM the first time, and from L2 as long as L2 holds it afterwards (``l2``). The share of misses determines the
mean seconds per byte of each tensor. With ``n`` transfers in flight, each takes ``n`` times as long per byte. The mean number
of transfers in flight depends on the times of the blocks and these times depend on it, so ``Launch`` iterates both until they
change little.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

from tilelang_npu.simulator.machine.op_records import Event
from tilelang_npu.simulator.machine.repeated_events import counted
from tilelang_npu.simulator.time.cost import LINK
from tilelang_npu.simulator.time.pipe_steps import Expansion
from tilelang_npu.simulator.time.timing import Pace, Share
from tilelang_npu.target import Chip

Key = tuple[int, bool]
"""The position of a kernel argument, and whether the argument is written (True) or read (False)."""
Linked = Mapping[tuple[int, bool], int]
"""The bytes that a launch moves to and from other cards, by the rank of the card and whether the bytes are written there."""


@dataclass
class MovedBytes:
    """The bytes of a tensor that a launch reads, or that it writes; the fields are sums of those of ``GmBytes``."""

    nbytes: float = 0.0
    far: float = 0.0
    near: float = 0.0
    requests: float = 0.0

    def add(self, nbytes: float, far: float, near: float, requests: float, times: int) -> None:
        """Adds to each field the argument of the same name multiplied by ``times``."""
        self.nbytes += nbytes * times
        self.far += far * times
        self.near += near * times
        self.requests += requests * times


def seconds_of_links(linked: Linked, chip: Chip) -> float:
    """Returns the least time in which the links can move the bytes of a launch to and from other cards."""
    found, links = 0.0, chip.links
    for written, one, together in ((True, links.write, links.write_all), (False, links.read, links.read_all)):
        moved = [nbytes for (_, direction), nbytes in linked.items() if direction == written]
        found = max(found, max(moved, default=0) / one, sum(moved) / together)
    return found


def bytes_of(stream: Sequence[Event], expansion: Expansion) -> dict[Key, MovedBytes]:
    """Returns the GM bytes that one core moves in one block, by kernel argument and whether it is written.

    Args:
        stream: the executed ops of the core.
        expansion: the steps of the ops.
    """
    total: dict[Key, MovedBytes] = defaultdict(MovedBytes)
    for event, count in counted(stream).items():
        for step in expansion.of(event):
            for part in step.cost.gm:
                total[part.buffer, part.written].add(part.nbytes, part.far, part.near, part.requests, count)
    return total


@dataclass(frozen=True)
class Served:
    """For how long the transfers of one tensor occupy HBM and L2, per byte and per request, if no other transfer is in flight.

    Attributes:
        far: the share of the tensor's transferred bytes that HBM transfers, from 0 to 1.
        hbm: seconds per byte for which HBM is occupied, averaged over all bytes of the tensor.
        l2: seconds per byte for which L2 is occupied, averaged over all bytes of the tensor.
        request: seconds per request for which L2 is occupied.
        lockstep: seconds per request for which L2 is occupied while all cores have begun at once, and many of them read the
            same bytes at the same time.
    """

    far: float
    hbm: float
    l2: float
    request: float
    lockstep: float


def served(moved: Mapping[Key, MovedBytes], missed: Mapping[Key, float], added: Mapping[int, int],
           places: Mapping[int, float], chip: Chip) -> dict[Key, Served]:
    """Returns for how many seconds per byte, and per request, the transfers of each tensor occupy HBM and L2.

    Args:
        moved: the bytes that the whole launch moves.
        missed: for each tensor and direction, the share of these bytes that miss L2, from 0 to 1 (``l2``).
        added: for each tensor with atomic updates, the number of updates of its most updated line; these updates are
            serialised.
        places: for each tensor, the mean number of different offsets that the cores read at the same time if all cores begin at
            once.
        chip: the chip, for the rates of HBM and L2.
    """
    rates = chip.traffic
    from_l2 = {key: part.near * (1.0 - missed.get(key, 0.0)) for key, part in moved.items()}
    read = sum(nbytes for (_, written), nbytes in from_l2.items() if not written)
    l2_read, l2_write = rates.l2_rates(read / (sum(from_l2.values()) or 1.0))
    found = {}
    for key in moved:
        far = missed.get(key, 0.0)
        buffer, written = key
        in_turn = added.get(buffer, 0) * rates.same_line / max(moved[key].near, 1.0) if written else 0.0
        together = 0.0 if written or buffer not in places else 1.0 / (places[buffer] * rates.same_place)
        hbm, l2 = (rates.hbm_write, l2_write) if written else (rates.hbm_read, l2_read)
        found[key] = Served(far, far / hbm, max((1.0 - far) / l2, in_turn),
                            1.0 / rates.requests, max(1.0 / rates.requests, together))
    return found


@dataclass(frozen=True)
class GmUse:
    """The bytes that HBM and L2 transfer for a launch, and the least time that each of them needs for its bytes.

    L2 transfers the bytes that hit it; HBM transfers those that miss it and the written bytes that L2 cannot hold. Updates of
    one line that L2 executes one after the other, and requests for less than a line, take longer than their bytes: they are not
    in these times.

    Attributes:
        hbm_bytes: the number of bytes that are read from HBM or written to it.
        hbm_seconds: the seconds that HBM needs for these bytes at its peak rates.
        l2_bytes: the number of bytes that L2 transfers to the cores and from them.
        l2_seconds: the seconds that L2 needs for these bytes at its peak rates. Reads and writes take place at the same time.
    """

    hbm_bytes: float
    hbm_seconds: float
    l2_bytes: float
    l2_seconds: float


def gm_use(moved: Mapping[Key, MovedBytes], serves: Mapping[Key, Served], chip: Chip) -> GmUse:
    """Returns the bytes that HBM and L2 transfer for a launch, with the least time for them.

    Args:
        moved: the bytes that the launch moves.
        serves: for each tensor and direction, the share of its bytes that HBM transfers.
        chip: the chip, for the rates of HBM and L2.
    """
    rates = chip.traffic
    hbm_bytes = hbm_seconds = 0.0
    near = {False: 0.0, True: 0.0}
    for (buffer, written), part in moved.items():
        missed = serves[buffer, written].far
        hbm_bytes += missed * part.far
        hbm_seconds += missed * part.far / (rates.hbm_write if written else rates.hbm_read)
        near[written] += (1.0 - missed) * part.near
    l2_bytes = near[False] + near[True]
    read, write = rates.l2_rates(near[False] / (l2_bytes or 1.0))
    return GmUse(hbm_bytes, hbm_seconds, l2_bytes, max(near[False] / read, near[True] / write))


class Sharing(NamedTuple):
    """The mean numbers of GM transfers that are in flight at the same time on the whole chip.

    Attributes:
        reading: the number of transfers that read from L2, or that read from or write to HBM.
        writing: the number of transfers that write to L2.
        linked: the number of transfers between this card and others.
    """

    reading: float
    writing: float
    linked: float = 0.0


def pace_of(serves: Mapping[Key, Served], sharing: Sharing, chip: Chip, linked: Linked = MappingProxyType({}), *,
            lockstep: bool = False) -> Pace:
    """Returns the cycles per byte and per request that a transfer of each tensor takes while others are in flight.

    Transfers between cards have the keys ``(LINK, written)``. The links are one more server: of the transfers in flight, those
    to one card share the link to it, as if they were spread evenly over the cards, and all share what the card can move.

    Args:
        serves: for each tensor and direction, the seconds for which its transfers occupy HBM and L2.
        sharing: the numbers of transfers in flight.
        chip: the chip, for its clock and its links.
        linked: the bytes that the launch moves to and from other cards.
        lockstep: whether all cores have begun at once.
    """
    reading, writing = sharing.reading * chip.clock, sharing.writing * chip.clock
    links = {}
    for written in {written for _, written in linked}:
        one, together = (chip.links.write, chip.links.write_all) if written else (chip.links.read, chip.links.read_all)
        cards = sum(direction == written for _, direction in linked)
        seconds = max(max(1.0, sharing.linked / cards) / one, sharing.linked / together)
        links[LINK, written] = Share(0.0, 0.0, seconds * chip.clock, 0.0)
    return links | {key: Share(one.far, one.hbm * reading, one.l2 * (writing if key[1] else reading),
                       (one.lockstep if lockstep else one.request) * (writing if key[1] else reading))
            for key, one in serves.items()}
