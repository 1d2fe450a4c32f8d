"""Advice: the causes of lost time in a launch, with the time without each cause, the largest gain first.

The launch is timed again without the cause: with short rows that cost no more than their bytes, without a redundant barrier,
with its blocks in another order. The gain is what a better kernel can achieve, or, where the advice says ``at most``, an upper
bound. Changes that were compiled and timed, as ``kernel.profile()`` does for other parameters, say so.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tilelang_npu.dialects.ir.remarks import remark_of
from tilelang_npu.errors import Location
from tilelang_npu.simulator.machine.op_records import Barrier, Event, Mmad, OpRecord, accesses_to_gm, footprint, number_of
from tilelang_npu.simulator.result import JsonObject
from tilelang_npu.simulator.result.profile.moved_bytes import argument_bytes
from tilelang_npu.simulator.result.profile.time_breakdown import LaunchBreakdown, without_rows
from tilelang_npu.simulator.result.profile.time_parts import line_of
from tilelang_npu.simulator.result.profile.what_if import (
    larger_instructions,
    with_steps,
    without_flags,
    without_scalar_work,
    without_waits,
)
from tilelang_npu.simulator.time.pipe_steps import CROSS_SET, PIPE, PIPES, RUN, PipeStep, scaled_work

if TYPE_CHECKING:
    from tilelang_npu.simulator.result.launch_result import Launch
    from tilelang_npu.simulator.run.recorded_launch import BlockRun

LEAST = 0.02
"""The share of its time that a launch must gain for a cause to be reported."""
AGAIN = 4
"""Number of reads of a tensor from which on its tiles may be too small."""
FETCHED_AGAIN = 1.5
"""Number of transfers of a tensor from HBM from which on another order of tiles may help."""
SEVERAL = 8
"""Copies, or hand-overs, of a block from which on there may be too many."""
SMALL = 2048
"""Bytes of a copy below which latency dominates."""
ORDERS = (2, 4, 8)
"""Widths of the bands of blocks that are tried."""
LARGER = 2.0
"""How much larger tiles are tried, at most."""
LONE = 1.5
"""Ratio of the work of two Vector cores from which on the work counts as not divided."""


@dataclass(frozen=True)
class Advice:
    """A cause of lost time.

    Attributes:
        cause: a short name.
        text: the problem, with sizes, and the change that solves it.
        place: the line, where there is one.
        before: microseconds of the call.
        after: microseconds without the cause.
        how: where ``after`` comes from: ``timed again`` without the cause, ``compiled`` with the change, or ``at most``.
    """

    cause: str
    text: str
    place: Location | None
    before: float
    after: float
    how: str = "timed again"

    @property
    def gain(self) -> float:
        """The share of the time that is saved."""
        return 1 - self.after / self.before

    def __str__(self) -> str:
        where = f"line {self.place.line}: " if self.place is not None else ""
        time = f"{self.before:.2f} us become {self.after:.2f} ({-self.gain:+.0%}, {self.how})"
        return f"{self.cause}: {where}{self.text}  {time}"

    def to_dict(self) -> JsonObject:
        """Returns the row as data for JSON."""
        where = {"line": self.place.line, "file": self.place.file} if self.place is not None else {}
        return {"cause": self.cause, "text": self.text, **where, "us": self.after, "gain": self.gain, "how": self.how}


def advice(launch: Launch, parts: LaunchBreakdown, total: float) -> Iterator[Advice]:
    """Yields the advice for a launch of a call that takes ``total`` microseconds."""
    for rule in (_short_rows, _small_copies, _unaligned, _order, _order_in_a_block, _scalar, _barriers, _one_vector_core,
                 _hand_overs, _few_blocks, _reads_again, _no_overlap, _small_tiles):
        for one in rule(launch, parts):
            if one.before - one.after > LEAST * total:  # a short launch among several can gain little
                yield replace(one, before=total, after=total - (one.before - one.after))


def _told(launch: Launch, after: float, cause: str, text: str, place: Location | None = None,
          how: str = "timed again") -> Iterator[Advice]:
    if after < launch.time_us * (1 - LEAST):
        yield Advice(cause, text, place, launch.time_us, after, how)


def _worst(parts: LaunchBreakdown, kinds: Sequence[str], pipe: str = "") -> Location | None:
    """Returns the line with the most time of some kinds: on the critical path, or otherwise in all work."""
    for times in (parts.path.items(), ((reason, us) for (_, reason), us in parts.work.items())):
        lines: Counter[Location] = Counter()
        for reason, us in times:
            if reason.kind in kinds and reason.place is not None and pipe in ("", reason.pipe):
                lines[reason.place] += us  # type: ignore[assignment]  # a Counter of float
        if lines:
            return lines.most_common(1)[0][0]
    return None


def _transfers(launch: Launch) -> Iterator[tuple[OpRecord, PipeStep, Event, int]]:
    """Yields the transfers between GM and the cores, with the number of times that each is done in the launch."""
    for index, stream, times in launch.recorded.distinct_streams:
        expansion = launch.expansions[index]
        for event, count in Counter(stream).items():
            for step in expansion.of(event):
                if step.cost.gm:
                    yield expansion.records[number_of(event)], step, event, count * times


# -- transfers -----------------------------------------------------------------------------------------------------------------


def _short_rows(launch: Launch, parts: LaunchBreakdown) -> Iterator[Advice]:
    place = _worst(parts, ("short rows",))
    if place is None:
        return
    run = min((footprint(access, event).simplified().element for record, _, event, _ in _transfers(launch)
               if line_of(record.location) == place for access in record.accesses if access.memory == "gm"), default=0)
    after = launch.retimed(without_rows(launch.chip)).time_us
    yield from _told(launch, after, "small bursts",
                     f"rows of {run} bytes take longer than their bytes: copy tiles whose rows in GM are longer", place)


def _small_copies(launch: Launch, parts: LaunchBreakdown) -> Iterator[Advice]:
    count = nbytes = 0
    lines: Counter[Location | None] = Counter()
    for record, step, _, times in _transfers(launch):
        if step.cost.nbytes < SMALL:
            count, nbytes = count + times, nbytes + step.cost.nbytes * times
            lines[line_of(record.location)] += times
    if count < SEVERAL * launch.blocks:
        return

    def without_latency(record: OpRecord, step: PipeStep) -> PipeStep:
        """Makes small copies take only the time of their bytes."""
        if not step.cost.gm or step.cost.nbytes >= SMALL:
            return step
        cycles = step.cost.busy * step.cost.nbytes / SMALL
        return step._replace(cost=replace(step.cost, busy=cycles, done=cycles, latency=0.0))

    yield from _told(launch, with_steps(launch, without_latency).time_us, "small bursts",
                     f"{count // launch.blocks} copies of {nbytes // count} bytes on average in each block: copy larger tiles",
                     lines.most_common(1)[0][0], "at most")


def _unaligned(launch: Launch, parts: LaunchBreakdown) -> Iterator[Advice]:
    rows: Counter[tuple[Location | None, int]] = Counter()
    for record, step, event, times in _transfers(launch):
        more = sum(part.far - part.nbytes for part in step.cost.gm) * times
        if more > 0:
            strides = [footprint(access, event).simplified().strides for access in record.accesses if access.memory == "gm"]
            rows[line_of(record.location), min((stride for one in strides for stride in one), default=0)] += int(more)
    if not rows:
        return
    (place, stride), _ = rows.most_common(1)[0]
    sector = launch.chip.traffic.sector
    after = launch.retimed(replace(launch.chip, traffic=replace(launch.chip.traffic, sector=1))).time_us
    yield from _told(launch, after, "unaligned rows",
                     f"rows lie {stride} bytes apart, which is no multiple of {sector}, and move lines of "
                     f"{launch.chip.traffic.line} bytes that others move again: pad the rows of the tensor to "
                     f"{-(-stride // sector) * sector} bytes", place)


def _reads_again(launch: Launch, parts: LaunchBreakdown) -> Iterator[Advice]:
    rows = [row for row in argument_bytes(launch) if not row.written and row.needed and row.used >= AGAIN * row.needed]
    if not rows or _sums_fill_l0c(launch):
        return
    names = {row.name for row in rows}

    def with_half_the_loads(record: OpRecord, step: PipeStep) -> PipeStep:
        """Halves the loads of tensors that are read many times."""
        repeated = any(access.label in names for access in record.accesses if access.memory == "gm" and access.reads)
        if not step.cost.gm or not repeated:
            return step
        gm = tuple(part._replace(nbytes=part.nbytes // 2, far=part.far / 2, near=part.near / 2) for part in step.cost.gm)
        return step._replace(cost=replace(step.cost, busy=step.cost.busy / 2, done=step.cost.done / 2, gm=gm))

    worst = max(rows, key=lambda row: row.used)
    yield from _told(launch, with_steps(launch, with_half_the_loads).time_us, "narrow tile",
                     f"{' and '.join(sorted(names))} are read {worst.used / worst.needed:.0f} times over: with a tile of the "
                     "result that is twice as large, half as often", _most_loaded(launch, worst.name), "at most")


def _sums_fill_l0c(launch: Launch) -> bool:
    """Whether a product tile that accumulates takes more than half of L0C, so that none twice as large fits."""
    room = launch.chip.memory["cc"].size
    for index, stream, _ in launch.recorded.distinct_streams:
        records = launch.recorded.program.functions[index].records
        sums = [(place, access) for place, record in enumerate(records) if isinstance(record.work, Mmad)
                for access in record.accesses if access.memory == "cc" and access.reads]
        if sums and any(2 * footprint(access, event).nbytes > room for event in set(stream)
                        for place, access in sums if place == number_of(event)):
            return True
    return False


def _small_tiles(launch: Launch, parts: LaunchBreakdown) -> Iterator[Advice]:
    """Advises larger tiles, if instructions are short compared with their fixed cost and the memories have room."""
    rooms = [launch.chip.memory[memory].size / function.extents[memory] for function in launch.recorded.program.functions
             for memory in ("ub", "cbuf") if function.extents.get(memory)]
    larger = min([LARGER, *rooms])
    yield from _told(launch, launch.retimed(larger_instructions(larger, launch.chip)).time_us, "small tiles",
                     f"the memories have room for tiles {larger:.1f} times as large, which need as many times fewer "
                     "instructions, copies and waits", _worst(parts, ("compute", "transfer", "latency")))


# -- blocks --------------------------------------------------------------------------------------------------------------------


def _order(launch: Launch, parts: LaunchBreakdown) -> Iterator[Advice]:
    """Advises an order of blocks in which neighbours read the same data, if L2 does not hold all."""
    far = sum(part.far * launch.serves[key].far for key, part in launch.moved.items() if not key[1])
    needed = sum(row.needed for row in argument_bytes(launch) if not row.written)
    if launch.recorded.program.global_sync or far < 1.2 * needed or launch.waves < 2:
        return
    best, said = launch.time_us, ""
    for text, blocks in _orders(launch):
        after = launch.retimed(blocks=blocks).time_us
        if after < best:
            best, said = after, text
    yield from _told(launch, best, "block order",
                     f"{far / 2**20:.0f} MB come from HBM where {needed / 2**20:.0f} are needed: let the blocks go {said} "
                     "(T.use_swizzle, or the index computed from the block's number)")


def _orders(launch: Launch) -> Iterator[tuple[str, list[BlockRun]]]:
    """Yields other orders of the blocks: by the place in a tensor that they read first, in bands of such places."""
    blocks = launch.recorded.blocks
    places: dict[str, list[int]] = {}
    for lane, (index, _) in enumerate(launch.recorded.program.lanes):
        records = launch.recorded.program.functions[index].records
        for position, _, _, access in accesses_to_gm(records, blocks[0].streams[lane], lambda access: access.reads):
            if access.label not in places and all(position < len(run.gm[lane]) for run in blocks):
                places[access.label] = [run.gm[lane][position] for run in blocks]
    ranks = {name: {offset: rank for rank, offset in enumerate(sorted(set(offsets)))} for name, offsets in places.items()}
    several = [name for name in places if len(ranks[name]) > 1]
    for first in several:
        for second in several:
            if first == second:
                continue
            along = [ranks[first][offset] for offset in places[first]]
            across = [ranks[second][offset] for offset in places[second]]
            for width in (1, *ORDERS):
                order = sorted(range(len(blocks)), key=lambda one: (along[one] // width, across[one], along[one]))
                text = f"along {second}" if width == 1 else f"in bands of {width} tiles of {first}"
                yield text, [blocks[one] for one in order]


def _order_in_a_block(launch: Launch, parts: LaunchBreakdown) -> Iterator[Advice]:
    """Advises another order of the tiles inside a block, if it reads from HBM again what L2 has evicted. If two tensors are
    read many times, tiles that share parts of one of them can follow each other; streaming reads do not count."""
    rows = [row for row in argument_bytes(launch) if not row.written and row.needed and row.used >= AGAIN * row.needed]
    worst = max(rows, key=lambda row: row.hbm - row.needed, default=None)
    if worst is None or len(rows) < 2 or worst.hbm < FETCHED_AGAIN * worst.needed:
        return
    if launch.waves > 1 or not _stored_again(launch):
        return
    holding = replace(launch.chip, l2=sum(row.moved for row in argument_bytes(launch)))
    yield from _told(launch, launch.retimed(holding).time_us, "tile order",
                     f"{worst.name} comes from HBM {worst.hbm / worst.needed:.1f} times over, {worst.hbm / 2**20:.0f} MB where "
                     f"{worst.needed / 2**20:.0f} are needed: before a tile needs a part of it again, other data evict it from "
                     f"the {launch.chip.l2 >> 20} MB of L2. Let tiles that share most follow each other: bands of some "
                     "rows, column by column (T.use_swizzle, or the index computed from the tile's number)",
                     _most_loaded(launch, worst.name), "at most")


def _stored_again(launch: Launch) -> bool:
    """Whether blocks store several result tiles."""
    stores: Counter[Location | None] = Counter()
    for record, step, _, times in _transfers(launch):
        if any(part.written for part in step.cost.gm):
            stores[line_of(record.location)] += times
    return max(stores.values(), default=0) >= 2 * launch.blocks


def _most_loaded(launch: Launch, name: str) -> Location | None:
    """Returns the line that moves most of a tensor."""
    lines: Counter[Location | None] = Counter()
    for record, step, _, times in _transfers(launch):
        if any(access.label == name for access in record.accesses if access.memory == "gm"):
            lines[line_of(record.location)] += step.cost.nbytes * times
    return lines.most_common(1)[0][0] if lines else None


def _few_blocks(launch: Launch, parts: LaunchBreakdown) -> Iterator[Advice]:
    room = launch.waves * launch.cores
    if launch.recorded.program.global_sync or launch.blocks > 0.85 * room:
        return
    after = launch.launch_us + launch.chip.microseconds(launch.cycles) * launch.blocks / room
    what = f"{launch.blocks} block{'s' * (launch.blocks > 1)} for {launch.cores} cores"
    if launch.waves > 1:
        what = f"the last of {launch.waves} waves has {launch.blocks - room + launch.cores} blocks for {launch.cores} cores"
    cause = "few blocks" if launch.waves == 1 else "uneven waves"
    yield from _told(launch, after, cause, f"{what}: divide the work into as many equal parts as there are cores",
                     how="at most")


def _one_vector_core(launch: Launch, parts: LaunchBreakdown) -> Iterator[Advice]:
    """Advises dividing the Vector work, if one Vector core of a mixed kernel does all or nearly all of it."""
    functions = launch.recorded.program.functions
    lanes = [(place, index) for place, (index, _) in enumerate(launch.recorded.program.lanes) if functions[index].core == "AIV"]
    mixed = len(lanes) < len(launch.recorded.program.lanes)
    if not lanes or not mixed or launch.chip.aiv_per_aic < 2 or launch.recorded.program.global_sync:
        return
    work = [sum(group.timing.busy[place][PIPE["V"]] * group.count for group in launch.groups) for place, _ in lanes]
    work += [0.0] * (len(lanes) < launch.chip.aiv_per_aic)
    if max(work) < LONE * min(work) or not max(work):
        return
    started = min(launch.cores, launch.blocks) * launch.chip.launch.core_us if len(work) > len(lanes) else 0.0

    def divided(record: OpRecord, step: PipeStep) -> PipeStep:
        """Halves the Vector work of each core."""
        return scaled_work(step, 0.5) if step.kind == RUN and record.core == "AIV" else step

    yield from _told(launch, with_steps(launch, divided).time_us + started, "one Vector core",
                     f"one of the two Vector cores of a block has {100 * max(work) / sum(work):.0f} % of the Vector work: give "
                     "each half of the rows (the second index of T.Kernel)", _worst(parts, ("compute",), "V"))


# -- waits ---------------------------------------------------------------------------------------------------------------------


def _scalar(launch: Launch, parts: LaunchBreakdown) -> Iterator[Advice]:
    place = _worst(parts, ("scalar",))
    if place is None:
        return

    elements = sum(count * times for index, stream, times in launch.recorded.distinct_streams for event,
                   count in Counter(stream).items()
                   for step in launch.expansions[index].of(event) if step.kind == RUN and PIPES[step.pipe] == "S")
    yield from _told(launch, with_steps(launch, without_scalar_work).time_us, "scalar work",
                     f"{elements // launch.blocks} elements of a block are loaded or stored one by one: say it with vector "
                     "operations (kernel.explain() tells why a T.Parallel is not)", place)


def _barriers(launch: Launch, parts: LaunchBreakdown) -> Iterator[Advice]:
    """Advises removing the author's barriers without effect: the launch has no more hazards without them."""
    program = launch.recorded.program
    candidates = [(index, record.number) for index, function in enumerate(program.functions)
                  for op, record in zip(program.ops(index), function.records, strict=True)
                  if isinstance(record.work, Barrier) and remark_of(op) is None]
    if not candidates or not any(launch.held_us.get((index, number, -1), 0.0) for index, number in candidates):
        return

    def without(dropped: frozenset[tuple[int, int]]) -> Launch:
        """Returns the launch without some records, given by the numbers of their function and of the record."""
        removed = {(program.functions[index].core, number) for index, number in dropped}
        return with_steps(launch, lambda record, step: None if (record.core, record.number) in removed else step)

    before = sum(len(hazards) for _, hazards in launch.met)
    dropped: frozenset[tuple[int, int]] = frozenset()
    for one in candidates:
        less = dropped | {one}
        if sum(len(hazards) for _, hazards in without(less).met) <= before:
            dropped = less
    if dropped:
        lines = sorted({where.line for index, number in dropped
                        if (where := program.functions[index].records[number].location) is not None})
        worst = max(dropped, key=lambda one: launch.held_us.get((*one, -1), 0.0))
        yield from _told(launch, without(dropped).time_us, "redundant barrier",
                         f"barriers keep nothing apart (line{'s' * (len(lines) > 1)} {', '.join(map(str, lines))}): leave them "
                         "out", line_of(program.functions[worst[0]].records[worst[1]].location))


def _flags(launch: Launch) -> int:
    """Returns the flags between the cores that a block sets."""
    return sum(count * times for index, stream, times in launch.recorded.distinct_streams for event,
               count in Counter(stream).items()
               for step in launch.expansions[index].of(event) if step.kind == CROSS_SET) // launch.blocks


def _hand_overs(launch: Launch, parts: LaunchBreakdown) -> Iterator[Advice]:
    flags = _flags(launch)
    if flags < SEVERAL:
        return
    yield from _told(launch, with_steps(launch, without_flags).time_us, "hand-overs",
                     f"the cores hand over {flags} times in a block and wait for each other: hand over larger tiles, or let "
                     "iterations overlap (T.Pipelined)", _worst(parts, ("flag",)), "at most")


def _no_overlap(launch: Launch, parts: LaunchBreakdown) -> Iterator[Advice]:
    """Advises overlap, if a block repeats loads, work and stores strictly one after the other."""
    if _flags(launch):
        return
    tiles: dict[Location | None, set[int]] = defaultdict(set)
    again: Counter[Location | None] = Counter()
    for record, step, event, times in _transfers(launch):
        for access in record.accesses:
            if access.memory != "gm" and access.writes and not any(part.written for part in step.cost.gm):
                tiles[line_of(record.location)].add(footprint(access, event).offset)
                again[line_of(record.location)] += times
    repeated = [place for place, offsets in tiles.items() if len(offsets) == 1 and again[place] > launch.blocks]
    if not repeated:
        return
    place = _worst(parts, ("transfer", "latency", "HBM", "L2"), "MTE2")
    yield from _told(launch, with_steps(launch, without_waits).time_us, "no overlap",
                     "each load waits until the last tile is no longer needed: T.Pipelined(num_stages=2), or two alternating "
                     "buffers",
                     place if place in repeated else repeated[0], "at most")
