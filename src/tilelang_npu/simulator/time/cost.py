"""``CostModel``, which computes the cycles of an op from the chip's tables and the sizes and strides of the op's operands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import ceil, gcd
from typing import NamedTuple

from tilelang_npu import ops
from tilelang_npu.ops.scale_layouts import GROUP
from tilelang_npu.simulator.machine.op_records import (
    Access,
    Event,
    Fold,
    Footprint,
    Lanes,
    Mmad,
    Multiply,
    OpRecord,
    PatchLoad,
    PeerSignal,
    PeerTransfer,
    PeerWait,
    PutsEnd,
    RegisterWork,
    ScalarAccess,
    ScratchUse,
    Sorting,
    Transfer,
    footprint,
    value,
)
from tilelang_npu.target import BLOCK, Chip, Move, VectorRate
from tilelang_npu.target.chip_data import REPEAT_BYTES
from tilelang_npu.target.dtypes import dtype

REPEATS = 255
"""Maximum number of repeats of one vector instruction."""
SORTED, MERGED, PAIR = 32, 4, 8
"""Number of elements that one sort instruction sorts, number of lists that one merge combines, and bytes of an element together
with its index."""
ARANGE, STORE_OF_ARANGE = "hivm.hir.varange", 2.2e-9
"""The name of the op of ``T.arange``, and the seconds per element of the scalar loop with which AscendNPU-IR's library executes
the op for several axes: measured with tilelang-mlir-ascend on a 910B2C (docs/accuracy.md)."""
ROWS_OF_BRCB = 8
"""Number of elements that one repeat of ``brcb`` expands to a block of 32 bytes each."""


LINK = -1
"""In place of the position of a kernel argument: the memory of other cards."""


class GmBytes(NamedTuple):
    """The bytes of one tensor in GM that an op reads or writes.

    Attributes:
        buffer: the position of the tensor among the kernel's arguments.
        written: whether the bytes are written; otherwise they are read.
        nbytes: the number of bytes that the op uses.
        far: the number of bytes that HBM transfers if L2 does not hold them. For rows that are not aligned to sectors these are
            the bytes of whole lines.
        near: the number of bytes of L2 traffic if L2 holds them, with the bytes of whole lines unless the path has shares of
            its rate for distances of rows; atomic updates count twice, because they read and write.
        requests: the number of requests to L2, one for each line of each row.
    """

    buffer: int
    written: bool
    nbytes: int
    far: float
    near: float
    requests: float


class LinkBytes(NamedTuple):
    """The bytes that an op moves between this card and another card.

    Attributes:
        card: the rank of the other card.
        written: whether the bytes are written to the other card; otherwise they are read from it.
        nbytes: the number of bytes.
    """

    card: int
    written: bool
    nbytes: int


@dataclass(frozen=True)
class Cost:
    """The cycles of a step (one action of an op on one pipe) on a chip whose other cores are idle.

    Attributes:
        busy: cycles from the start of the step until its pipe can start the next step.
        done: cycles from the start of the step until its result is available.
        nbytes: the bytes that the step moves or computes on; for a multiplication the operations.
        gm: the bytes that the step moves in GM. They take longer if other cores use GM at the same time.
        link: the bytes that the step moves to or from another card; None for none. They take longer if other cores use the
            links at the same time.
        more_busy: additional cycles of ``busy`` if L2 holds none of the source.
        more_done: additional cycles of ``done`` if L2 holds none of the source.
        latency: the part of ``done`` that is the fixed latency of a transfer in GM, in which it uses no bandwidth.
        shared: whether other cores can make the step slower, because it moves bytes in GM or to or from another card.
    """

    busy: float
    done: float
    nbytes: int = 0
    gm: tuple[GmBytes, ...] = ()
    link: LinkBytes | None = None
    more_busy: float = 0.0
    more_done: float = 0.0
    latency: float = 0.0
    shared: bool = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "shared", bool(self.gm) or self.link is not None)


class CostModel:
    """The cycles of ops on one chip.

    Args:
        chip: the chip.
        scalar_arange: whether a ``varange`` op over several axes is timed as a loop of scalar stores, as which AscendNPU-IR's
            library implements it; otherwise it is timed as vector instructions.
    """

    def __init__(self, chip: Chip, *, scalar_arange: bool = False) -> None:
        self.chip = chip
        self._scalar_arange = scalar_arange
        held = chip.through("M", "a", "b")
        self._into_l0 = {name for name, path in chip.paths.items() if {path.source, path.target} <= held}

    def _rate(self, cost: str) -> VectorRate:
        """Returns the constants of a vector instruction by its cost key: from the chip's table, or from the operation of a
        plug-in."""
        found = self.chip.vector.get(cost)
        return ops.rate_of(self.chip, cost) if found is None else found

    def cost(self, record: OpRecord, event: Event) -> Cost:
        """Returns the cycles of one execution of an op that consists of one step.

        Args:
            record: the record of the op.
            event: the execution, with the sizes that are only known at run time.

        Raises:
            TypeError: the op has no cost, such as a wait.
        """
        work = record.work
        prints = [footprint(access, event) for access in record.accesses]
        if isinstance(work, Transfer):
            return self._transfer(work, record.accesses, prints)
        if isinstance(work, PatchLoad):
            return self._patch_load(work, prints[1])
        if isinstance(work, PeerTransfer):
            return self._peer_transfer(work, prints[0].nbytes, event)
        if isinstance(work, Lanes):
            if self._scalar_arange and record.name == ARANGE and sum(size > 1 for size in prints[work.shape].sizes) > 1:
                cycles = _count(prints[work.shape].sizes) * STORE_OF_ARANGE * self.chip.clock
                return Cost(cycles, cycles, prints[work.shape].nbytes)
            return self._lanes(work, prints, event)
        if isinstance(work, RegisterWork):
            cycles = value(work.cycles, event)
            return Cost(cycles, cycles, sum(place.nbytes for place in prints))
        if isinstance(work, Fold):
            return self._fold(work, prints[0])
        if isinstance(work, Sorting):
            return self._sorting(work, prints[work.shape])
        if isinstance(work, Multiply):
            macro = Mmad(work.element, False, 0, 0, 0, (-1, -1), (-1, -1), -1, (-1, -1), "", False)
            return self.multiply(macro, value(work.m, event), value(work.k, event), value(work.n, event))
        if isinstance(work, ScalarAccess):
            cycles = self.chip.scalar.store if work.store else self.chip.scalar.load
            return Cost(cycles, cycles, prints[0].element)
        if isinstance(work, PeerSignal):
            late = self.chip.links.latency * self.chip.clock
            return Cost(self.chip.scalar.store, self.chip.scalar.store + late)
        if isinstance(work, PeerWait):  # of the look that ends the wait
            return Cost(self.chip.scalar.load, self.chip.scalar.load)
        if isinstance(work, (ScratchUse, PutsEnd)):
            return Cost(0, 0)
        msg = f"{record.name} has no cost"
        raise TypeError(msg)

    # -- moves ---------------------------------------------------------------------------------------------------------

    def _transfer(self, work: Transfer, accesses: Sequence[Access], prints: Sequence[Footprint]) -> Cost:
        source = prints[0]
        if any(place.empty for place in prints):  # a fixpipe reads all of L0C even if there is no column to write
            return Cost(1, 1)
        path = self.chip.paths[work.path]
        assert path.move is not None, f"{work.path} moves nothing"
        runs, share, slower = 1, 1.0, 1.0
        gm = []
        for access, place in zip(accesses, prints, strict=True):
            if access.memory == "gm":
                plain = place.simplified()
                rows = _count(plain.sizes)
                each, times = self._lines(plain), 2 if access.adds else 1
                runs = max(runs, rows * self._runs(plain.element))
                requests = rows * ceil(each / self.chip.traffic.line)
                used = plain.element if path.distances else each  # the core's rate has the cost of the distance of rows
                gm.append(GmBytes(access.buffer, access.writes, place.nbytes, each * rows, used * rows * times,
                                  requests * times))
                share = min(share, self._first_of_line(plain))
                slower /= path.share_of_rate(gcd(*plain.strides))
        near = self.moved(path.near or path.move, source.nbytes, runs, slower)
        if work.path in self._into_l0:  # MTE1 is as busy as for the macro's loads; alone it ends earlier (DOC matmul c0, c1)
            return Cost(near.busy + self.chip.cube.burst, near.done, source.nbytes)
        far = self.moved(path.move, int(source.nbytes / share), runs)
        return Cost(near.busy, near.done, source.nbytes, tuple(gm), None, share * max(0.0, far.busy - near.busy),
                    share * max(0.0, far.done - near.done), (path.near or path.move).fixed)

    def _patch_load(self, work: PatchLoad, target: Footprint) -> Cost:
        """Returns the cycles of a load of patches: pieces of the source that are one row long take a cycle each."""
        if target.empty:
            return Cost(1, 1)
        path = self.chip.paths[work.path]
        assert path.move is not None, f"{work.path} moves nothing"
        done = self.moved(path.move, target.nbytes, ceil(target.nbytes / BLOCK / work.run))
        return Cost(done.busy + self.chip.cube.burst, done.done, target.nbytes)

    def _peer_transfer(self, work: PeerTransfer, nbytes: int, event: Event) -> Cost:
        """Returns the cycles of a transfer between UB and another card, if no other core uses the links.

        The bytes take the path between UB and GM of this card, at most at the rate of the link, and the latency of both.
        """
        if not nbytes:
            return Cost(1, 1)
        path, links, clock = self.chip.paths[work.path], self.chip.links, self.chip.clock
        near = path.near or path.move
        assert near is not None, f"{work.path} moves nothing"
        written = path.target == "gm"
        rate = (links.write if written else links.read) / clock
        cost = self.moved(near, nbytes)
        slower = max(cost.busy, nbytes / rate)
        late = links.latency * clock * (1 if written else 2)
        return Cost(slower, cost.done + max(0.0, nbytes / rate - nbytes / near.rate) + late, nbytes,
                    link=LinkBytes(value(work.card, event), written, nbytes), latency=near.fixed + late)

    def _runs(self, nbytes: int) -> int:
        """Returns the number of requests that move ``nbytes`` contiguous bytes. A request has 32, 64, 128, 256 or 512 bytes, so
        480 bytes need four requests (docs/hardware.md#alignment)."""
        lines, rest = divmod(nbytes, self.chip.traffic.line)
        return max(1, lines + ceil(rest / BLOCK).bit_count())

    def _lines(self, plain: Footprint) -> float:
        """Returns the number of contiguous, aligned bytes whose transfer takes as long as one row of a footprint in GM.

        For rows that begin at sectors this is the number of bytes of the row. Otherwise the unused bytes of the row's L2 lines
        are added, on average; rows that do not begin at blocks of 32 bytes take even longer.
        """
        traffic = self.chip.traffic
        if not plain.strides or all(stride % traffic.sector == 0 for stride in plain.strides):
            return plain.element
        grain = gcd(traffic.sector, *plain.strides)
        whole = plain.element + traffic.line - grain
        return max(whole, plain.element * traffic.unaligned) if grain % traffic.aligned else whole

    def _first_of_line(self, plain: Footprint) -> float:
        """Returns the share of a footprint's accesses that can miss L2. For rows shorter than a line that lie a line or more
        apart this is the row's share of a line; otherwise it is 1."""
        line = self.chip.traffic.line
        if not plain.strides or plain.strides[-1] < line or plain.element >= line:
            return 1.0
        return plain.element / line

    @staticmethod
    def moved(move: Move, nbytes: int, runs: int = 1, slower: float = 1.0) -> Cost:
        """Returns the cycles of a data movement.

        Args:
            move: the constants of the path.
            nbytes: the bytes that are moved.
            runs: the number of requests into which the strided operand is divided.
            slower: the factor by which each request and each byte takes longer.
        """
        busy = max(move.issue, slower * max(runs * move.row, nbytes / move.sustained))
        done = max(busy, move.floor, move.fixed + slower * max(nbytes / move.rate, runs * move.row))
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
        rate = self._rate(key)
        slope = (rate.slope32 if bits >= 32 else rate.slope16) * conflict
        repeats, instructions = self._repeats(place, bits)
        busy = max(instructions * rate.issue, slope * repeats)
        return Cost(busy, max(busy, rate.fixed + slope * repeats))

    @staticmethod
    def _repeats(place: Footprint, bits: int) -> tuple[int, int]:
        """Returns the number of repeats and the number of vector instructions for a tile.

        Args:
            place: the footprint of the tile.
            bits: the width in which the elements are computed.
        """
        widened = max(1, bits // 8) / place.element
        plain = place.simplified()
        rows, run = _count(plain.sizes), plain.element * widened
        per_row = ceil(run / REPEAT_BYTES)
        repeats = rows * per_row
        if rows == 1 or per_row == 1:
            return repeats, ceil(repeats / REPEATS)
        return repeats, min(rows * ceil(per_row / REPEATS), per_row * ceil(rows / REPEATS))

    def _conflict(self, work: Lanes, prints: Sequence[Footprint]) -> float:
        """Returns the factor, from 1 to 2, by which an instruction is slower because its two sources lie in the same groups of
        UB banks (docs/hardware.md#memories)."""
        if work.banked is None or not self._rate(work.cost).banked:
            return 1.0
        banks = self.chip.banks
        one, other = (prints[index] for index in work.banked)
        if (one.offset, one.sizes, one.strides) == (other.offset, other.sizes, other.strides):
            return 1.0  # a bank group delivers one row per cycle, and both sources read the same row
        first, second = one.offset // banks.width, other.offset // banks.width
        blocks = REPEAT_BYTES // BLOCK
        apart = (second - first) % banks.groups
        apart = min(apart, banks.groups - apart)
        return 1.0 + max(0, blocks - apart) / blocks

    def _sorting(self, work: Sorting, source: Footprint) -> Cost:
        """Returns the cycles of a sort: one pass that sorts groups of 32 elements, and passes that merge four lists into one
        each. A pass starts after the previous pass has ended."""
        if source.empty:
            return Cost(1, 1)
        passes, lists = 1, ceil(source.sizes[-1] / SORTED)
        while work.merged and lists > 1:
            passes, lists = passes + 1, ceil(lists / MERGED)
        repeats = ceil(_count(source.sizes) * PAIR / REPEAT_BYTES)
        rate = self._rate(work.cost)
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
            repeats = (folded - 1) * ceil(rest * width / REPEAT_BYTES)
            busy, done = self._chain(work.combine, work.bits, repeats, max(1, (folded - 1).bit_length()))
            elements = rest
        if last in work.axes:
            rows = elements // max(1, source.sizes[last])
            run = source.sizes[last] * width
            ways = [self._by_halves(work, rows, run)]
            if run > REPEAT_BYTES and "cg" + work.cost[1:] in self.chip.vector:
                ways.append(self._by_blocks("cg" + work.cost[1:], work.bits, rows, run))
            more = min(ways, key=lambda way: way[1])
            busy, done = busy + more[0], done + more[1]
        return Cost(busy, max(busy, done), source.nbytes)

    def _by_halves(self, work: Fold, rows: int, run: int) -> tuple[float, float]:
        """Returns the ``busy`` and ``done`` cycles of a reduction that combines the halves of each row until the row fits one
        repeat, and then reduces each row with one repeat.

        Args:
            work: the reduction.
            rows: the number of rows.
            run: the number of bytes of a row.
        """
        per_row = ceil(run / REPEAT_BYTES)
        last = self._chain(work.cost, work.bits, rows, 1)
        if per_row == 1:
            return last
        first = self._chain(work.combine, work.bits, rows * (per_row - 1), (per_row - 1).bit_length())
        return first[0] + last[0] + self.chip.vector[work.combine].fixed, first[1] + last[1]

    def _by_blocks(self, key: str, bits: int, rows: int, run: int) -> tuple[float, float]:
        """Returns the ``busy`` and ``done`` cycles of a reduction that reduces each block of 32 bytes to one element, and that
        repeats this until each row is one element.

        Args:
            key: the cost key of the instruction that reduces blocks.
            bits: the width of an element.
            rows: the number of rows.
            run: the number of bytes of a row.
        """
        repeats = rounds = 0
        while True:
            repeats, rounds = repeats + ceil(rows * run / REPEAT_BYTES), rounds + 1
            if run <= BLOCK:
                return self._chain(key, bits, repeats, rounds)
            run = ceil(run / BLOCK) * bits // 8

    def _chain(self, key: str, bits: int, repeats: int, rounds: int) -> tuple[float, float]:
        """Returns the ``busy`` and ``done`` cycles of a chain of instructions, each of which needs the result of the previous
        one.

        Args:
            key: the cost key of the instructions.
            bits: the width of an element.
            repeats: the number of repeats of all instructions together.
            rounds: the number of instructions in the chain.
        """
        rate = self._rate(key)
        slope = rate.slope32 if bits >= 32 else rate.slope16
        done = rate.fixed * rounds + slope * repeats
        return max(rate.issue, slope * repeats) + rate.fixed * (rounds - 1), done

    # -- cube ----------------------------------------------------------------------------------------------------------

    def chunks(self, work: Mmad, m: int, k: int, n: int) -> list[int]:
        """Returns the sizes of the chunks into which the matmul macro divides K, so that the operands of a chunk fit into half
        of L0A and half of L0B.

        Args:
            work: the macro.
            m, k, n: the sizes of the matrices: A is m x k, B is k x n.
        """
        step = self.depth_of_block(work)
        per_step_a, per_step_b = _up(m) * BLOCK, _up(n) * BLOCK
        half_a, half_b = self.chip.memory["ca"].size // 2, self.chip.memory["cb"].size // 2
        steps = max(1, min(half_a // max(per_step_a, 1), half_b // max(per_step_b, 1)))
        size = steps * step
        return [min(size, k - start) for start in range(0, k, size)] or [0]

    def depth_of_block(self, work: Mmad) -> int:
        """Returns the number of elements along K in one block of 32 bytes."""
        return 8 * BLOCK // dtype(work.element).bits

    def load_a(self, work: Mmad, m: int, depth: int) -> Cost:
        """Returns the cycles of loading one chunk of A (``m`` rows, ``depth`` elements along K) from L1 to L0A."""
        return self._load("l1_l0a", _up(m) * self._bytes(work, depth))

    def load_b(self, work: Mmad, depth: int, n: int) -> Cost:
        """Returns the cycles of loading one chunk of B (``depth`` elements along K, ``n`` columns) from L1 to L0B."""
        return self._load("l1_l0b", _up(n) * self._bytes(work, depth))

    def load_bias(self, n: int) -> Cost:
        """Returns the cycles of loading a bias of ``n`` elements from L1 to the bias table."""
        return self.moved(self.chip.moves["l1_bt"], 4 * _up(n))

    def _bytes(self, work: Mmad, depth: int) -> int:
        """Returns the bytes of a row of A, or of a column of B, with ``depth`` elements along K, in whole blocks.

        The instruction that loads elements of an MX matrix loads their scales too, one byte for 32 elements.
        """
        step = self.depth_of_block(work)
        padded = ceil(depth / step) * step
        return padded * dtype(work.element).bits // 8 + (padded // GROUP if work.scaled else 0)

    def _load(self, path: str, nbytes: int) -> Cost:
        cost = self.moved(self.chip.moves[path], nbytes)
        burst = self.chip.cube.burst
        return Cost(cost.busy + burst, cost.done + burst, nbytes)

    def multiply(self, work: Mmad, m: int, depth: int, n: int) -> Cost:
        """Returns the cycles of one MMAD instruction, which multiplies an m x depth matrix by a depth x n matrix."""
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
