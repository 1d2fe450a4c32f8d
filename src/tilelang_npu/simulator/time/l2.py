"""A model of L2: which of the bytes that a launch moves come from HBM, and which are written back to it.

L2 keeps the most recently used data: of a matrix of 302 MB that is read four times, 0.005 % hit its 192 MB (DOC data_copy). If
all data of a launch fit, each byte is read from HBM once and none is written back, as the next launch writes it again.
Otherwise the transfers of the cores are simulated in interleaved order; each is one cache entry.
"""

from __future__ import annotations

from collections import Counter, OrderedDict, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tilelang_npu.simulator.time.gm_traffic import Key, MovedBytes

WALKED = 2_000_000
"""Limit of the transfers of a launch that are simulated."""
MOST_KINDS = 1 << 22
"""Upper bound of the number of pairs of a tensor and a transfer size."""

Numbers = NDArray[np.int64]


Kinds = dict[tuple[int, int], int]
"""Numbers of the pairs of a tensor and a transfer size, from 0 on."""


class Used(NamedTuple):
    """The transfers of one core in order, one element each: the number of its kind, whether it writes, and its offset."""

    kind: Numbers
    written: Numbers
    offset: Numbers


def touched(moved: Mapping[Key, MovedBytes], sizes: Mapping[int, int]) -> float:
    """Returns the bytes of all data that a launch accesses."""
    most: dict[int, float] = defaultdict(float)
    for (buffer, _), part in moved.items():
        most[buffer] += part.nbytes
    return sum(min(nbytes, sizes.get(buffer, 0)) for buffer, nbytes in most.items())


def missed_once(moved: Mapping[Key, MovedBytes], sizes: Mapping[int, int], produced: frozenset[int]) -> dict[Key, float]:
    """Returns the miss rates if all data fit; ``produced`` tensors are read only after they are written."""
    return {(buffer, written): 0.0 if written or buffer in produced else min(1.0, sizes.get(buffer, 0) / max(part.nbytes, 1.0))
            for (buffer, written), part in moved.items()}


class _Held:
    """The state of L2 during the simulation. A cache entry is the number ``offset * MOST_KINDS + kind``."""

    def __init__(self, capacity: float) -> None:
        self.capacity = capacity
        self.lines: OrderedDict[int, None] = OrderedDict()
        self.dirty: set[int] = set()
        self.nbytes = 0
        self.missed: dict[Key, float] = defaultdict(float)
        self.wrote: dict[int, dict[int, int]] = defaultdict(dict)  # per tensor, the sizes of writes by kind

    def touch(self, moved: Sequence[int], written: Sequence[int], kinds: Sequence[tuple[int, int]]) -> None:
        """Accesses the entries of some transfers, one after the other; evicts the least recently used."""
        lines, dirty, renew = self.lines, self.dirty, self.lines.move_to_end
        for one, writes in zip(moved, written, strict=True):
            if writes:
                dirty.add(one)
            if one in lines:
                renew(one)
                continue
            buffer, nbytes = kinds[one % MOST_KINDS]
            if writes:
                self.wrote[buffer][one % MOST_KINDS] = nbytes
            elif found := self.parts(one, kinds) if buffer in self.wrote else []:
                for each in found:
                    renew(each)
                continue
            lines[one] = None
            self.nbytes += nbytes
            if not writes:
                self.missed[buffer, False] += nbytes
            while self.nbytes > self.capacity:
                self.drop(kinds)

    def parts(self, one: int, kinds: Sequence[tuple[int, int]]) -> list[int]:
        """Returns entries of writes that contain all bytes of a read: one larger entry, or several smaller ones of one size, as
        for tiles that are written whole and read by halves, or the other way round."""
        offset, kind = divmod(one, MOST_KINDS)
        buffer, nbytes = kinds[kind]
        for other, size in self.wrote.get(buffer, {}).items():
            if size > nbytes:
                around = (start * MOST_KINDS + other for start in range(offset, offset - size, -nbytes))
                if (found := next((each for each in around if each in self.dirty), None)) is not None:
                    return [found]
            elif size < nbytes and nbytes % size == 0:
                inside = [start * MOST_KINDS + other for start in range(offset, offset + nbytes, size)]
                if self.dirty.issuperset(inside):
                    return inside
        return []

    def drop(self, kinds: Sequence[tuple[int, int]]) -> None:
        """Evicts the least recently used entry; a written one goes to HBM."""
        oldest, _ = self.lines.popitem(last=False)
        buffer, nbytes = kinds[oldest % MOST_KINDS]
        self.nbytes -= nbytes
        if oldest in self.dirty:
            self.dirty.remove(oldest)
            self.missed[buffer, True] += nbytes


def side_by_side(counts: Sequence[int]) -> NDArray[np.intp]:
    """Returns the interleaved order of the transfers of cores that start and end together.

    Args:
        counts: number of transfers of each core.

    Returns:
        positions in the concatenated transfers of all cores.
    """
    core = np.repeat(np.arange(len(counts)), counts)
    place = np.concatenate([np.arange(count) for count in counts])
    return np.lexsort((place, core, place / np.repeat(counts, counts)))


def missed_by_walk(waves: Iterable[Sequence[Used]], kinds: Kinds, capacity: float) -> dict[Key, float]:
    """Returns the miss rates of the transfers of each wave of cores; entries that are still dirty at the end are written back.

    Args:
        waves: the transfers.
        kinds: the kinds of transfers; may grow from wave to wave.
        capacity: bytes that L2 holds.
    """
    held, left = _Held(capacity), WALKED
    orders: dict[tuple[int, ...], NDArray[np.intp]] = {}  # waves of equal blocks have equal counts
    counted: Counter[int] = Counter()
    rows: list[tuple[int, int]] = []
    for cores in waves:
        if left <= 0:
            break
        counts = tuple(len(used.kind) for used in cores)
        if not sum(counts):
            continue
        if counts not in orders:
            orders[counts] = side_by_side(counts)
        kind, written, offset = (np.concatenate(column)[orders[counts]] for column in zip(*cores, strict=True))
        rows += list(kinds)[len(rows):]
        held.touch((offset * MOST_KINDS + kind).tolist(), written.tolist(), rows)
        counted.update(dict(enumerate(np.bincount(kind * 2 + written).tolist())))
        left -= sum(counts)
    while held.lines:
        held.drop(rows)
    moved: dict[Key, float] = defaultdict(float)
    for number, times in counted.items():
        if times:
            buffer, nbytes = rows[number // 2]
            moved[buffer, bool(number % 2)] += times * nbytes
    return {key: min(1.0, held.missed[key] / nbytes) for key, nbytes in moved.items()}
