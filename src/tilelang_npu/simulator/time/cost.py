"""Cycles of one step, from the chip's tables and the operands' sizes and strides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, gcd
from typing import NamedTuple

from tilelang_npu.simulator.machine.op_records import (
    Access,
    Event,
    Fold,
    Footprint,
    Lanes,
    Mmad,
    Multiply,
    OpRecord,
    ScalarAccess,
    Sorting,
    Transfer,
    footprint,
    value,
)
from tilelang_npu.target import BLOCK, Chip, Move
from tilelang_npu.target.dtypes import dtype

REPEAT = 256
"""Bytes that a vector instruction processes per repeat (docs/hardware.md#vector-instructions)."""
REPEATS = 255
"""Most repeats of one vector instruction."""
SORTED, MERGED, PAIR = 32, 4, 8
"""Elements that are sorted at once, lists that are merged at once, and bytes of an element with its index."""
ROWS_OF_BRCB = 8
"""Rows that one repeat of brcb expands to a block each."""


class GmBytes(NamedTuple):
    """The bytes in GM that a step reads or writes.

    Attributes:
        buffer: the kernel argument.
        written: whether they are written.
        nbytes: bytes that the op uses.
        far: bytes that come from HBM if L2 does not hold them: whole lines, for rows that start anywhere in a line.
        near: bytes of L2 traffic otherwise: twice as many for atomic updates, which read and write.
    """

    buffer: int
    written: bool
    nbytes: int
    far: float
    near: float


@dataclass(frozen=True)
class Cost:
    """Cycles of a step on an otherwise idle chip.

    Attributes:
        busy: until the pipe takes the next step.
        done: until the result is available.
        nbytes: bytes that it moves or computes on.
        gm: what it moves in GM; that may take longer if other cores use GM too.
        more_busy, more_done: additional cycles of ``busy`` and ``done`` if L2 holds none of the source.
        latency: the part of ``done`` in which no pipe is busy.
    """

    busy: float
    done: float
    nbytes: int = 0
    gm: tuple[GmBytes, ...] = ()
    more_busy: float = 0.0
    more_done: float = 0.0
    latency: float = 0.0


class CostModel:
    """The costs of a chip."""

    def __init__(self, chip: Chip) -> None:
        self.chip = chip
        held = chip.through("M", "a", "b")
        self._into_l0 = {name for name, path in chip.paths.items() if {path.source, path.target} <= held}

    def cost(self, record: OpRecord, event: Event) -> Cost:
        """Returns the cycles of an op that is one step."""
        work = record.work
        prints = [footprint(access, event) for access in record.accesses]
        if isinstance(work, Transfer):
            return self._transfer(work, record.accesses, prints)
        if isinstance(work, Lanes):
            return self._lanes(work, prints, event)
        if isinstance(work, Fold):
            return self._fold(work, prints[0])
        if isinstance(work, Sorting):
            return self._sorting(work, prints[work.shape])
        if isinstance(work, Multiply):
            macro = Mmad(work.element, False, 0, 0, 0, (-1, -1), (-1, -1), -1, (-1, -1), False, False)
            return self.multiply(macro, value(work.m, event), value(work.k, event), value(work.n, event))
        if isinstance(work, ScalarAccess):
            cycles = self.chip.scalar.store if work.store else self.chip.scalar.load
            return Cost(cycles, cycles, prints[0].element)
        msg = f"{record.name} has no cost"
        raise TypeError(msg)

    # -- moves ---------------------------------------------------------------------------------------------------------

    def _transfer(self, work: Transfer, accesses: Sequence[Access], prints: Sequence[Footprint]) -> Cost:
        source = prints[0]
        if any(place.empty for place in prints):  # a fixpipe reads all of L0C even if there is no column to write
            return Cost(1, 1)
        path = self.chip.paths[work.path]
        assert path.move is not None, f"{work.path} moves nothing"
        rows, share = 1, 1.0
        gm = []
        for access, place in zip(accesses, prints, strict=True):
            if access.memory == "gm":
                plain = place.simplified()
                rows = max(rows, _count(plain.sizes))
                moved = self._lines(plain) * _count(plain.sizes)
                times = 2 if access.adds else 1
                gm.append(GmBytes(access.buffer, access.writes, place.nbytes, moved, moved * path.spread * times))
                share = min(share, self._first_of_line(plain))
        near = self.moved(path.near or path.move, source.nbytes, rows)
        if work.path in self._into_l0:  # MTE1 is as busy as for the macro's loads; alone it ends earlier (DOC matmul c0, c1)
            return Cost(near.busy + self.chip.cube.burst, near.done, source.nbytes)
        far = self.moved(path.move, int(source.nbytes / share), rows)
        return Cost(near.busy, near.done, source.nbytes, tuple(gm), share * (far.busy - near.busy),
                    share * (far.done - near.done), (path.near or path.move).fixed)

    def _lines(self, plain: Footprint) -> float:
        """Returns the bytes that a row moves: its own, and on average the rest of its lines if it starts anywhere in them."""
        traffic = self.chip.traffic
        if not plain.strides or all(stride % traffic.sector == 0 for stride in plain.strides):
            return plain.element
        grain = gcd(traffic.sector, *plain.strides)
        return plain.element + traffic.line - grain

    def _first_of_line(self, plain: Footprint) -> float:
        """Returns, for rows shorter than a line with contiguous neighbours, the share of accesses that can miss L2."""
        line = self.chip.traffic.line
        if not plain.strides or plain.strides[-1] < line or plain.element >= line:
            return 1.0
        return plain.element / line

    @staticmethod
    def moved(move: Move, nbytes: int, rows: int = 1) -> Cost:
        """Returns the cycles of a data movement."""
        busy = max(move.issue, rows * move.row, nbytes / move.sustained)
        done = max(busy, move.floor, move.fixed + max(nbytes / move.rate, rows * move.row))
        if move.flight:
            busy = max(busy, done * min(1.0, nbytes / move.flight))
        return Cost(busy, done, nbytes)

    # -- vectors -------------------------------------------------------------------------------------------------------

    def _lanes(self, work: Lanes, prints: Sequence[Footprint], event: Event) -> Cost:
        place = prints[work.shape]
        if place.empty:
            return Cost(1, 1)
        cost = self._instruction(work.cost, work.bits, place, self._conflict(work, prints))
        total = Cost(cost.busy * work.times, cost.done * work.times, place.nbytes)
        spread = value(work.spread, event)
        if spread:
            rate = self.chip.vector["brcb"]
            cycles = rate.fixed + rate.slope32 * ceil(spread / ROWS_OF_BRCB)
            total = Cost(total.busy + cycles, total.done + cycles, place.nbytes)
        return total

    def _instruction(self, key: str, bits: int, place: Footprint, conflict: float) -> Cost:
        rate = self.chip.vector[key]
        slope = (rate.slope32 if bits >= 32 else rate.slope16) * conflict
        repeats, instructions = self._repeats(place, bits)
        busy = max(instructions * rate.issue, slope * repeats)
        return Cost(busy, max(busy, rate.fixed + slope * repeats))

    @staticmethod
    def _repeats(place: Footprint, bits: int) -> tuple[int, int]:
        """Returns the repeats and instructions for a tile whose elements are computed in ``bits``."""
        widened = max(1, bits // 8) / place.element
        plain = place.simplified()
        rows, run = _count(plain.sizes), plain.element * widened
        per_row = ceil(run / REPEAT)
        repeats = rows * per_row
        if rows == 1 or per_row == 1:
            return repeats, ceil(repeats / REPEATS)
        return repeats, min(rows * ceil(per_row / REPEATS), per_row * ceil(rows / REPEATS))

    def _conflict(self, work: Lanes, prints: Sequence[Footprint]) -> float:
        """Returns the slowdown of two sources whose blocks lie in the same bank groups (docs/hardware.md#memories)."""
        if work.banked is None or not self.chip.vector[work.cost].banked:
            return 1.0
        banks = self.chip.banks
        one, other = (prints[index] for index in work.banked)
        if (one.offset, one.sizes, one.strides) == (other.offset, other.sizes, other.strides):
            return 1.0  # a bank group delivers one row per cycle, and both sources read the same row
        first, second = one.offset // banks.width, other.offset // banks.width
        blocks = REPEAT // BLOCK
        apart = (second - first) % banks.groups
        apart = min(apart, banks.groups - apart)
        return 1.0 + max(0, blocks - apart) / blocks

    def _sorting(self, work: Sorting, source: Footprint) -> Cost:
        """Returns the cost of a sort: two pairs per cycle in each pass; a merge combines four lists and needs the previous
        pass."""
        if source.empty:
            return Cost(1, 1)
        passes, lists = 1, ceil(source.sizes[-1] / SORTED)
        while work.merged and lists > 1:
            passes, lists = passes + 1, ceil(lists / MERGED)
        repeats = ceil(_count(source.sizes) * PAIR / REPEAT)
        rate = self.chip.vector[work.cost]
        done = (rate.fixed + rate.slope32 * repeats) * passes
        return Cost(max(rate.issue, done - rate.fixed), done, source.nbytes)

    def _fold(self, work: Fold, source: Footprint) -> Cost:
        if source.empty:
            return Cost(1, 1)
        last = len(source.sizes) - 1
        width = max(1, work.bits // 8)
        busy = done = 0.0
        folded = 1
        for axis in work.axes:
            if axis != last:
                folded *= source.sizes[axis]
        elements = _count(source.sizes)
        if folded > 1:  # rows are combined pairwise
            rest = elements // folded
            repeats = (folded - 1) * ceil(rest * width / REPEAT)
            busy, done = self._chain(work.combine, work.bits, repeats, max(1, (folded - 1).bit_length()))
            elements = rest
        if last in work.axes:
            rows = elements // max(1, source.sizes[last])
            run = source.sizes[last] * width
            ways = [self._by_halves(work, rows, run)]
            if run > REPEAT and "cg" + work.cost[1:] in self.chip.vector:
                ways.append(self._by_blocks("cg" + work.cost[1:], work.bits, rows, run))
            more = min(ways, key=lambda way: way[1])
            busy, done = busy + more[0], done + more[1]
        return Cost(busy, max(busy, done), source.nbytes)

    def _by_halves(self, work: Fold, rows: int, run: int) -> tuple[float, float]:
        """Combines halves of rows of ``run`` bytes until a row fits one repeat, and then reduces each row at once."""
        per_row = ceil(run / REPEAT)
        last = self._chain(work.cost, work.bits, rows, 1)
        if per_row == 1:
            return last
        first = self._chain(work.combine, work.bits, rows * (per_row - 1), (per_row - 1).bit_length())
        return first[0] + last[0] + self.chip.vector[work.combine].fixed, first[1] + last[1]

    def _by_blocks(self, key: str, bits: int, rows: int, run: int) -> tuple[float, float]:
        """Reduces every block to an element, and repeats this until each row is one element."""
        repeats = rounds = 0
        while True:
            repeats, rounds = repeats + ceil(rows * run / REPEAT), rounds + 1
            if run <= BLOCK:
                return self._chain(key, bits, repeats, rounds)
            run = ceil(run / BLOCK) * bits // 8

    def _chain(self, key: str, bits: int, repeats: int, rounds: int) -> tuple[float, float]:
        """Returns the cost of dependent instructions: the pipe waits for the result of each but the last."""
        rate = self.chip.vector[key]
        slope = rate.slope32 if bits >= 32 else rate.slope16
        done = rate.fixed * rounds + slope * repeats
        return max(rate.issue, slope * repeats) + rate.fixed * (rounds - 1), done

    # -- cube ----------------------------------------------------------------------------------------------------------

    def chunks(self, work: Mmad, m: int, k: int, n: int) -> list[int]:
        """Returns the depths of the chunks of K whose operands fit the halves of L0A and L0B."""
        step = self.depth_of_block(work)
        bytes_ = dtype(work.element).nbytes
        per_step_a, per_step_b = _up(m) * step * bytes_, _up(n) * step * bytes_
        half_a, half_b = self.chip.memory["ca"].size // 2, self.chip.memory["cb"].size // 2
        steps = max(1, min(half_a // max(per_step_a, 1), half_b // max(per_step_b, 1)))
        size = steps * step
        return [min(size, k - start) for start in range(0, k, size)] or [0]

    def depth_of_block(self, work: Mmad) -> int:
        """Returns the elements of K in one block of 32 bytes."""
        return BLOCK // dtype(work.element).nbytes

    def load_a(self, work: Mmad, m: int, depth: int) -> Cost:
        """Returns the cost of loading one chunk from L1 to L0A."""
        return self._load("l1_l0a", _up(m) * self._padded(work, depth) * dtype(work.element).nbytes)

    def load_b(self, work: Mmad, depth: int, n: int) -> Cost:
        """Returns the cost of loading one chunk from L1 to L0B."""
        return self._load("l1_l0b", _up(n) * self._padded(work, depth) * dtype(work.element).nbytes)

    def load_bias(self, n: int) -> Cost:
        """Returns the cost of loading the bias table from L1."""
        return self.moved(self.chip.moves["l1_bt"], 4 * _up(n))

    def _padded(self, work: Mmad, depth: int) -> int:
        step = self.depth_of_block(work)
        return ceil(depth / step) * step

    def _load(self, path: str, nbytes: int) -> Cost:
        cost = self.moved(self.chip.moves[path], nbytes)
        burst = self.chip.cube.burst
        return Cost(cost.busy + burst, cost.done + burst, nbytes)

    def multiply(self, work: Mmad, m: int, depth: int, n: int) -> Cost:
        """Returns the cost of one MMAD."""
        cube = self.chip.cube
        kind = "hf32" if work.wide and work.element == "f32" else work.element
        fractals = ceil(m / cube.m) * ceil(n / cube.m) * ceil(depth / cube.k_step[kind])
        return Cost(fractals + cube.overhead, fractals + cube.latency, 2 * m * depth * n)


def _count(sizes: Sequence[int]) -> int:
    total = 1
    for size in sizes:
        total *= size
    return total


def _up(size: int) -> int:
    """Returns a size rounded up to whole fractals."""
    return -(-size // 16) * 16
