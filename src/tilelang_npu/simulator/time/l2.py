"""A model of L2: the share of the bytes of a launch that are read from HBM, and the share that are written to HBM.

L2 keeps the most recently used data: if a matrix of 302 MB is read four times, 0.005 % of the reads hit an L2 of 192 MB
(measured in the vendor's example data_copy). If all data of a launch fit into L2, each byte is read from HBM at most once, and
only written bytes in excess of ``Traffic.dirty`` go to HBM. Otherwise the transfers of all cores are simulated in interleaved
order; each transfer is one cache entry.
"""

from __future__ import annotations

from collections import Counter, OrderedDict, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tilelang_npu.simulator.time.gm_traffic import Key, MovedBytes

WALKED = 2_000_000
"""Maximum number of transfers of a launch that are simulated; the miss rates are then those of the whole launch."""
_AT_ONCE = 1 << 16
"""Number of transfers whose numbers are Python integers at the same time, each of which takes 32 bytes."""
MOST_KINDS = 1 << 22
"""Upper bound of the number of kinds of transfers (pairs of a tensor and a transfer size)."""

Numbers = NDArray[np.int64]
Flags = NDArray[np.bool_]


Kinds = dict[tuple[int, int], int]
"""The kinds of transfers: pairs of a kernel argument and a transfer size in bytes, numbered from 0 on in order of insertion."""


class Used(NamedTuple):
    """The GM transfers of one core in one block, in program order; each array has one element for each transfer.

    Attributes:
        kind: the number of the transfer's kind (``Kinds``).
        written: whether the transfer writes to GM; otherwise it reads.
        offset: the byte offset of the transfer in its tensor.
        total: the number of transfers of the core if the arrays have only the first ones; otherwise -1.
    """

    kind: NDArray[np.int32]
    written: Flags
    offset: Numbers
    total: int = -1

    @property
    def length(self) -> int:
        """The number of transfers of the core, of which the arrays may have only the first ones."""
        return len(self.kind) if self.total < 0 else self.total


def touched(moved: Mapping[Key, MovedBytes], sizes: Mapping[int, int]) -> float:
    """Returns an upper bound of the number of different bytes in GM that a launch accesses.

    Args:
        moved: the bytes that the launch moves.
        sizes: the size of each tensor in bytes.
    """
    most: dict[int, float] = defaultdict(float)
    for (buffer, _), part in moved.items():
        most[buffer] += part.nbytes
    return sum(min(nbytes, sizes.get(buffer, 0)) for buffer, nbytes in most.items())


def missed_once(moved: Mapping[Key, MovedBytes], sizes: Mapping[int, int], produced: frozenset[int], dirty: float,
                *, warm: bool) -> dict[Key, float]:
    """Returns the share of the bytes of each tensor that are read from HBM or written to HBM, for a launch whose data all fit
    into L2.

    Args:
        moved: the bytes that the launch moves.
        sizes: the size of each tensor in bytes.
        produced: the tensors that blocks read only after they have written them.
        dirty: the maximum number of written bytes that L2 holds.
        warm: whether L2 holds the tensors when the launch begins.
    """
    wrote = sum(min(part.nbytes, sizes.get(buffer, 0)) for (buffer, written), part in moved.items() if written)
    spilt = max(0.0, 1.0 - dirty / wrote) if wrote else 0.0

    def missed(buffer: int, written: bool, nbytes: float) -> float:
        once = min(1.0, sizes.get(buffer, 0) / max(nbytes, 1.0))
        return once * spilt if written else 0.0 if warm or buffer in produced else once

    return {(buffer, written): missed(buffer, written, part.nbytes) for (buffer, written), part in moved.items()}


class _Held:
    """The state of L2 during the simulation. A cache entry represents one transfer and has the number
    ``offset * MOST_KINDS + kind``.

    Args:
        capacity: bytes that L2 holds.
        most_dirty: maximum number of written bytes that L2 holds.
    """

    def __init__(self, capacity: float, most_dirty: float) -> None:
        self.capacity = capacity
        self.most_dirty = most_dirty
        self.lines: OrderedDict[int, None] = OrderedDict()
        self.dirty: OrderedDict[int, None] = OrderedDict()
        self.dirty_bytes = 0
        self.nbytes = 0
        self.missed: dict[Key, float] = defaultdict(float)
        self.wrote: dict[int, dict[int, int]] = defaultdict(dict)  # per tensor, the sizes of writes by kind
        self._starts: dict[int, dict[int, set[int]]] = {}  # by kind, the offsets of dirty entries by offset // size

    def touch(self, moved: Sequence[int], written: Sequence[int], kinds: Sequence[tuple[int, int]]) -> None:
        """Simulates some transfers one after the other, and evicts the least recently used entries if L2 is full.

        Args:
            moved: the cache entry of each transfer.
            written: whether each transfer writes.
            kinds: the kinds of transfers, by number.
        """
        lines, dirty, renew = self.lines, self.dirty, self.lines.move_to_end
        for one, writes in zip(moved, written, strict=True):
            if writes:
                if one in dirty:
                    dirty.move_to_end(one)
                else:
                    self.write(one, kinds)
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
        """Returns dirty entries that together contain all bytes of a read; empty if there are none.

        They are one larger entry, or several smaller entries of equal size. Such entries exist if a tile is written whole and
        read by halves, or the other way round.
        """
        offset, kind = divmod(one, MOST_KINDS)
        buffer, nbytes = kinds[kind]
        for other, size in self.wrote.get(buffer, {}).items():
            if size > nbytes:
                if (start := self._start_around(offset, nbytes, other, size)) is not None:
                    return [start * MOST_KINDS + other]
            elif size < nbytes and nbytes % size == 0 and one - kind + other in self.dirty:
                inside = [start * MOST_KINDS + other for start in range(offset, offset + nbytes, size)]
                if all(each in self.dirty for each in inside):
                    return inside
        return []

    def _start_around(self, offset: int, nbytes: int, kind: int, size: int) -> int | None:
        """Returns the last offset of a dirty entry of ``kind``, of ``size`` bytes, that contains the byte ``offset`` and begins
        a multiple of ``nbytes`` before it; None if there is no such entry."""
        if kind not in self._starts:
            self._starts[kind] = {}
            for one in self.dirty:
                if one % MOST_KINDS == kind:
                    self._note(one // MOST_KINDS, kind, size)
        table, last = self._starts[kind], offset // size
        near = [start for part in (last - 1, last) for start in table.get(part, ())
                if offset - size < start <= offset and (offset - start) % nbytes == 0]
        return max(near, default=None)

    def _note(self, offset: int, kind: int, size: int) -> None:
        self._starts[kind].setdefault(offset // size, set()).add(offset)

    def write(self, one: int, kinds: Sequence[tuple[int, int]]) -> None:
        """Marks an entry as dirty (written). If there are too many dirty bytes, the oldest dirty entries are written to HBM and
        stay in L2 as clean ones."""
        offset, kind = divmod(one, MOST_KINDS)
        nbytes = kinds[kind][1]
        self.dirty[one] = None
        self.dirty_bytes += nbytes
        if kind in self._starts:
            self._note(offset, kind, nbytes)
        while self.dirty_bytes > self.most_dirty:
            self.clean(next(iter(self.dirty)), kinds)

    def clean(self, one: int, kinds: Sequence[tuple[int, int]]) -> None:
        """Writes a dirty entry to HBM, so that it is no longer dirty."""
        offset, kind = divmod(one, MOST_KINDS)
        buffer, nbytes = kinds[kind]
        if kind in self._starts:
            self._starts[kind][offset // nbytes].discard(offset)
        del self.dirty[one]
        self.dirty_bytes -= nbytes
        self.missed[buffer, True] += nbytes

    def drop(self, kinds: Sequence[tuple[int, int]]) -> None:
        """Evicts the least recently used entry; a dirty one is written to HBM."""
        oldest, _ = self.lines.popitem(last=False)
        self.nbytes -= kinds[oldest % MOST_KINDS][1]
        if oldest in self.dirty:
            self.clean(oldest, kinds)


def most_of_each(counts: Sequence[int], most: int) -> list[int]:
    """Returns how many of the transfers of each core are needed for the first ``most`` transfers of ``side_by_side``.

    Args:
        counts: the number of transfers of each core.
        most: the number of transfers of all cores together.
    """
    total = sum(counts)
    return list(counts) if total <= most else [min(count, 1 + count * most // total) for count in counts]


def side_by_side(counts: Sequence[int], lengths: Sequence[int] | None = None) -> NDArray[np.intp]:
    """Returns an order in which the transfers of several cores interleave, if all cores start and end at the same time and each
    core's transfers are spread evenly.

    Args:
        counts: the number of transfers of each core.
        lengths: how many of them, from the first one on, are in the result; None for all.

    Returns:
        the position, in the concatenated transfers of all cores, of the transfer that comes first, second, and so on.
    """
    lengths = counts if lengths is None else lengths
    when = [np.arange(length) / count for count, length in zip(counts, lengths, strict=True) if count]
    return np.argsort(np.concatenate(when), kind="stable")  # at equal times the order of the cores


def missed_by_walk(waves: Iterable[Sequence[Used]], kinds: Kinds, capacity: float, dirty: float) -> dict[Key, float]:
    """Returns the share of the bytes of each tensor that are read from HBM or written to HBM, by simulating the transfers.

    Entries that are still dirty at the end stay in L2 and do not count as written to HBM.

    Args:
        waves: for each wave (one block on each core), the transfers of each core.
        kinds: the kinds of transfers; the iteration over ``waves`` can add kinds.
        capacity: the number of bytes that L2 holds.
        dirty: the maximum number of written bytes that L2 holds.
    """
    held, left = _Held(capacity, dirty), WALKED
    orders: dict[tuple[int, ...], NDArray[np.intp]] = {}  # waves of equal blocks have equal counts
    counted: Counter[int] = Counter()
    rows: list[tuple[int, int]] = []
    for cores in waves:
        if left <= 0:
            break
        counts = tuple(used.length for used in cores)
        if not sum(counts):
            continue
        lengths = most_of_each(counts, WALKED)
        if counts not in orders:
            orders[counts] = side_by_side(counts, lengths)[:WALKED]
        columns = list(zip(*cores, strict=True))[:3]
        kind, written, offset = (np.concatenate([part[:length] for part, length in zip(column, lengths, strict=True)])
                                 for column in columns)
        rows += list(kinds)[len(rows):]
        order = orders[counts]
        for start in range(0, len(order), _AT_ONCE):
            part = order[start:start + _AT_ONCE]
            own, writes = kind[part], written[part]
            held.touch((offset[part] * MOST_KINDS + own).tolist(), writes.tolist(), rows)
            counted.update(dict(enumerate(np.bincount(own * 2 + writes).tolist())))
        left -= len(order)
    moved: dict[Key, float] = defaultdict(float)
    for number, times in counted.items():
        if times:
            buffer, nbytes = rows[number // 2]
            moved[buffer, bool(number % 2)] += times * nbytes
    return {key: min(1.0, held.missed[key] / nbytes) for key, nbytes in moved.items()}


def places_at_once(cores: Sequence[Used], kinds: Kinds) -> dict[int, float]:
    """Returns, for each tensor, the mean number of different offsets that the cores read at the same time, if all cores begin
    at once and each read takes equally long.

    Tensors are left out if the cores make different numbers of reads of them, or if no two cores read the same offset at the
    same time.

    Args:
        cores: the transfers of each core.
        kinds: the kinds of transfers.
    """
    tensors = np.array([buffer for buffer, _ in kinds], np.int64)
    found = {}
    for buffer in {buffer for buffer, _ in kinds}:
        reads = [used.offset[(tensors[used.kind] == buffer) & ~used.written.astype(bool)] for used in cores]
        lengths = {len(offsets) for offsets in reads}
        if len(lengths) == 1 and lengths != {0} and len(cores) > 1:
            ordered = np.sort(np.stack(reads), axis=0)
            distinct = 1 + (ordered[1:] != ordered[:-1]).sum() / ordered.shape[1]
            if distinct < len(cores):
                found[buffer] = float(distinct)
    return found
