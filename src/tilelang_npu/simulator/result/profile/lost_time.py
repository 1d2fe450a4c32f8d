"""The causes of lost time in a launch, each with the time that the launch would take without the cause.

To find that time, the launch is timed again without the cause: for example with short rows that take no longer than their
bytes, without a redundant barrier, or with its blocks in another order. A kernel without the cause can achieve this time. If
a cause says ``at most``, the gain is only an upper bound; if it says ``estimate``, it can be smaller or larger.

A cause says where time is lost, not how to write the kernel without it: ``advice.py`` has the edits that were tried.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import ceil
from typing import TYPE_CHECKING, Literal

from xdsl.dialects import scf

from tilelang_npu.dialects.ir.remarks import DONE, REFUSED, Remark, module_remarks, remark_of
from tilelang_npu.dialects.text import location_of
from tilelang_npu.errors import Location
from tilelang_npu.simulator.machine.op_records import Barrier, Event, Mmad, OpRecord, accesses_to_gm, footprint, number_of
from tilelang_npu.simulator.machine.repeated_events import counted, kept_events
from tilelang_npu.simulator.result import JsonObject
from tilelang_npu.simulator.result.profile.moved_bytes import argument_bytes, argument_names, tile_bytes
from tilelang_npu.simulator.result.profile.time_breakdown import LaunchBreakdown, without_rows
from tilelang_npu.simulator.result.profile.time_parts import line_of, longest_line
from tilelang_npu.simulator.result.profile.what_if import (
    larger_instructions,
    with_steps,
    without_flags,
    without_scalar_work,
)
from tilelang_npu.simulator.time.pipe_steps import CROSS_SET, PIPE, RUN, WAIT, PipeStep, scaled_work
from tilelang_npu.target.chip_data import PIPES, CoreKind, Pipe, Space

if TYPE_CHECKING:
    from tilelang_npu.simulator.result.call_launches import AnyLaunch
    from tilelang_npu.simulator.result.launch_result import Launch
    from tilelang_npu.simulator.run.recorded_launch import BlockRun

SMALL_TILES = "small tiles"
"""The cause that trials of larger and smaller tiles can contradict (``advice.py``)."""
LEAST = 0.02
"""The minimum gain, as a share of the time, for which a cause is reported."""
AGAIN = 4
"""The minimum number of times that a tensor is read for which larger tiles are considered."""
FETCHED_AGAIN = 1.5
"""The minimum number of times that a tensor is loaded from HBM for which another order of tiles is considered."""
SEVERAL = 8
"""The minimum number of small copies, or of flags between cores, in a block for which they are considered a cause."""
SMALL = 2048
"""The number of bytes below which a copy counts as small, because its latency dominates."""
ORDERS = (2, 4, 8)
"""The widths, in tiles, of the bands in which other orders of blocks are tried."""
LARGER = 2.0
"""The maximum factor by which larger tiles are tried."""
How = Literal["timed again", "at most", "estimate"]
"""The origin of the time without a cause (:class:`LostTime`)."""
_LOAD_TO_STORE: dict[Pipe, int] = {"MTE2": 0, "MTE1": 1, "V": 2, "M": 2, "MTE3": 3, "FIX": 3}
"""The pipes that a tile passes on its way from GM to GM, by their order."""
LONE = 1.5
"""The minimum ratio between the work of two Vector cores of a block for which the work counts as not divided."""
DOMINATES = 0.25
"""The minimum share of the work of the Vector cores of an instruction that is named as a cause."""
_REPLACED = {
    "vgather": ("gathers", "if the indices are regular, copy shifted or strided tiles; compute indices that are the same in "
                           "each iteration once before the loop"),
    "vcast": ("conversions", "convert a whole tile once, or keep intermediate tiles in the element type of the operations"),
}
"""By the mnemonic of an instruction that often can be replaced: the name of the cause, and the remedy."""


@dataclass(frozen=True)
class LostTime:
    """A cause of lost time in a call.

    Attributes:
        cause: a short name of the cause, such as ``small bursts``.
        text: a description of the problem, with sizes, and of the kind of change that solves it.
        place: the source line with the problem; None if there is no such line.
        before: the modelled duration of the call in microseconds.
        after: the duration without the cause in microseconds.
        how: the origin of ``after``: ``timed again``, the launch was timed again without the cause; ``at most``, the gain is an
            upper bound; ``estimate``, the gain can be smaller or larger, because the change has effects that are not timed.
    """

    cause: str
    text: str
    place: Location | None
    before: float
    after: float
    how: How = "timed again"

    @property
    def gain(self) -> float:
        """The saved share of the call's duration, from 0 to 1."""
        return 1 - self.after / self.before

    @property
    def problem(self) -> str:
        """The cause, its source line and the problem in words."""
        where = f"line {self.place.line}: " if self.place is not None else ""
        return f"{self.cause}: {where}{self.text}"

    @property
    def times(self) -> str:
        """The duration of the call with and without the cause, in words."""
        return f"{self.before:.2f} us become {self.after:.2f} ({-self.gain:+.0%}, {self.how})"

    def __str__(self) -> str:
        return f"{self.problem}  {self.times}"

    def to_dict(self) -> JsonObject:
        """Returns the cause as a dict that JSON can hold."""
        where = {"line": self.place.line, "file": self.place.file} if self.place is not None else {}
        return {"cause": self.cause, "text": self.text, **where, "us": self.after, "gain": self.gain, "how": self.how}


def lost_time(call: AnyLaunch, breakdowns: Sequence[LaunchBreakdown]) -> Iterator[LostTime]:
    """Yields the causes of lost time in a call.

    Args:
        call: the launch or the launches of the call.
        breakdowns: for each launch, its time by reason.
    """
    for place, (launch, parts) in enumerate(zip(call.parts, breakdowns, strict=True)):
        found = [one for rule in (_short_rows, _small_copies, _unaligned, _order, _order_in_a_block, _scalar, _barriers,
                                  _one_vector_core, _hand_overs, _few_blocks, _narrow_tile, _repeated_reads, _no_overlap,
                                  _small_tiles, _atomic_updates, _costly_instructions)
                 for one in rule(launch, parts)]
        for one in (*found, *_separate_launches(call.parts[:place], launch, call.workspaces)):
            saved = one.before - one.after
            if saved > LEAST * call.time_us:  # a short launch among several can gain little
                yield replace(one, before=call.time_us, after=call.time_us - saved)


def _loss_of(launch: Launch, after: float, cause: str, text: str, place: Location | None = None,
             how: How = "timed again") -> Iterator[LostTime]:
    if after < launch.time_us * (1 - LEAST):
        yield LostTime(cause, text, place, launch.time_us, after, how)


def _worst(parts: LaunchBreakdown, kinds: Sequence[str], pipe: Pipe | Literal[""] = "") -> Location | None:
    """Returns the source line that takes most time for reasons of some kinds: on the critical path, or if it has none, in all
    work. None if there is no such line.

    Args:
        parts: the time of the launch by reason.
        kinds: the kinds of reasons.
        pipe: the pipe of the reasons; empty for all pipes.
    """
    for times in (parts.path.items(), ((reason, us) for (_, reason), us in parts.work.items())):
        longest = longest_line((reason, us) for reason, us in times if reason.kind in kinds and pipe in ("", reason.pipe))
        if longest is not None:
            return longest[0]
    return None


def _transfers(launch: Launch) -> Iterator[tuple[OpRecord, PipeStep, Event, int]]:
    """Yields the transfers between GM and the cores: the record of the op, its step, the executed op, and how often the launch
    executes it."""
    for index, stream, times in launch.recorded.distinct_streams:
        expansion = launch.expansions[index]
        for event, count in counted(stream).items():
            for step in expansion.of(event):
                if step.cost.gm:
                    yield expansion.records[number_of(event)], step, event, count * times


# -- transfers -----------------------------------------------------------------------------------------------------------------


def _short_rows(launch: Launch, parts: LaunchBreakdown) -> Iterator[LostTime]:
    place = _worst(parts, ("short rows",))
    if place is None:
        return
    run = min((footprint(access, event).simplified().element for record, _, event, _ in _transfers(launch)
               if line_of(record.location) == place for access in record.accesses if access.memory == "gm"), default=0)
    after = launch.retimed(without_rows(launch.chip)).time_us
    yield from _loss_of(launch, after, "small bursts",
                     f"rows of {run} bytes are too short for the full rate: copy tiles whose rows in GM are longer", place)


def _small_copies(launch: Launch, parts: LaunchBreakdown) -> Iterator[LostTime]:
    count = nbytes = 0
    lines: Counter[Location | None] = Counter()
    for record, step, _, times in _transfers(launch):
        if step.cost.nbytes < SMALL:
            count, nbytes = count + times, nbytes + step.cost.nbytes * times
            lines[line_of(record.location)] += times
    if count < SEVERAL * launch.blocks:
        return

    def without_latency(record: OpRecord, step: PipeStep) -> PipeStep:
        """Changes a step so that a small copy takes only the time of its bytes, without latency."""
        if not step.cost.gm or step.cost.nbytes >= SMALL:
            return step
        cycles = step.cost.busy * step.cost.nbytes / SMALL
        return step._replace(cost=replace(step.cost, busy=cycles, done=cycles, latency=0.0))

    yield from _loss_of(launch, with_steps(launch, without_latency).time_us, "small bursts",
                     f"{count // launch.blocks} copies of {nbytes // count} bytes on average in each block: copy larger tiles",
                     lines.most_common(1)[0][0], "at most")


def _unaligned(launch: Launch, parts: LaunchBreakdown) -> Iterator[LostTime]:
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
    yield from _loss_of(launch, after, "unaligned rows",
                     f"rows lie {stride} bytes apart, which is no multiple of {sector}, so neighbouring rows move the same "
                     f"lines of {launch.chip.traffic.line} bytes again: pad the rows of the tensor to "
                     f"{-(-stride // sector) * sector} bytes", place)


def _narrow_tile(launch: Launch, parts: LaunchBreakdown) -> Iterator[LostTime]:
    """Advises a larger tile of the result, if the operands of products are read many times, and L0C has room for the tile."""
    operands = _loaded_into(launch, "cbuf")
    rows = [row for row in argument_bytes(launch)
            if not row.written and row.needed and row.used >= AGAIN * row.needed and row.name in operands]
    if not rows or not _has_room_for_sums(launch):
        return
    worst = max(rows, key=lambda row: row.used)
    names = {row.name: 0.5 for row in rows}
    yield from _loss_of(launch, with_steps(launch, partial(_with_fewer_loads, names)).time_us, "narrow tile",
                     f"{_sentence_start(sorted(names))} read {worst.used / worst.needed:.0f} times: make the tile of the "
                     "result twice as large, which halves these reads", _most_loaded(launch, worst.name), "estimate")


def _repeated_reads(launch: Launch, parts: LaunchBreakdown) -> Iterator[LostTime]:
    """Advises loops inside of the blocks, if the Vector cores read equal tiles of a tensor many times.

    It is not enough that a tensor is read many times: the tiles of a stencil overlap without being equal, and each core has to
    read a tensor once if all need it.
    """
    reads = {row.name: row for row in argument_bytes(launch) if not row.written}
    lanes = sum(launch.recorded.program.functions[index].core == "AIV" for index, _ in launch.recorded.program.lanes)
    loading = min(launch.cores, launch.blocks) * lanes
    equal = {argument_names(launch).get(buffer, ""): nbytes for (buffer, written), nbytes in tile_bytes(launch).items()
             if not written}
    shares: dict[str, float] = {}
    for name, count in _loaded_into(launch, "ub").items():
        row = reads.get(name)
        if row is not None and row.needed and equal.get(name):
            tiles = equal[name] / (row.used / count)
            if count >= AGAIN * max(tiles, loading):
                shares[name] = max(tiles, loading) / count
    if not shares:
        return
    worst = max(shares, key=lambda name: reads[name].used)
    times = reads[worst].used / equal[worst]
    yield from _loss_of(launch, with_steps(launch, partial(_with_fewer_loads, shares)).time_us, "repeated reads",
                     f"equal tiles of {' and '.join(sorted(shares))} are read {times:.0f} times: let a block load such a tile "
                     "once, and do in a loop all the work that needs it", _most_loaded(launch, worst), "estimate")


def _loaded_into(launch: Launch, memory: Space) -> Counter[str]:
    """Returns, for each tensor that is loaded from GM into an on-chip memory, the number of these loads."""
    found: Counter[str] = Counter()
    for record, _, _, times in _transfers(launch):
        if any(access.memory == memory and access.writes for access in record.accesses):
            found.update({access.label: times for access in record.accesses if access.memory == "gm" and access.reads})
    return found


def _with_fewer_loads(shares: Mapping[str, float], record: OpRecord, step: PipeStep) -> PipeStep:
    """Returns the step; if it loads a tensor of which only a share of the loads is needed, with this share of its time.

    Args:
        shares: the needed share of the loads, from 0 to 1, by the name of the tensor.
        record: the record of the op.
        step: the step.
    """
    share = min((shares[access.label] for access in record.accesses
                 if access.memory == "gm" and access.reads and access.label in shares), default=1.0)
    if not step.cost.gm or share == 1.0:
        return step
    gm = tuple(part._replace(nbytes=round(part.nbytes * share), far=part.far * share, near=part.near * share,
                             requests=part.requests * share) for part in step.cost.gm)
    return step._replace(cost=replace(step.cost, busy=step.cost.busy * share, done=step.cost.done * share, gm=gm))


def _sentence_start(names: Sequence[str]) -> str:
    """Returns ``A is``, ``A and B are`` or ``A, B and C are``."""
    *others, last = names
    return f"{', '.join(others)} and {last} are" if others else f"{last} is"


def _has_room_for_sums(launch: Launch) -> bool:
    """Whether L0C has room for tiles twice as large of all sums of products.

    A sum with several slots counts once, because the compiler gives it fewer slots where it has to.
    """
    sums: dict[tuple[int, int | None], int] = {}
    for index, stream, _ in launch.recorded.distinct_streams:
        records = launch.recorded.program.functions[index].records
        accumulators = {place: [access for access in record.accesses if access.memory == "cc" and access.reads]
                        for place, record in enumerate(records) if isinstance(record.work, Mmad)}
        for event in set(kept_events(stream)):
            for access in accumulators.get(number_of(event), ()):
                key = index, access.owner
                sums[key] = max(sums.get(key, 0), footprint(access, event).nbytes)
    used = max((function.extents.get("cc", 0) for function in launch.recorded.program.functions), default=0)
    return 2 * min(sum(sums.values()), used) <= launch.chip.memory["cc"].size


def _small_tiles(launch: Launch, parts: LaunchBreakdown) -> Iterator[LostTime]:
    """Advises larger tiles, if instructions are short compared with their fixed cost and the memories have room.

    The gain is an estimate. Larger tiles are fewer, so that a core with few tiles can get more work than before, which is in
    the estimate; but also fewer blocks to dispatch, and fewer tiles whose loads overlap with work, which is not.
    Kernels with tiles that are divided into strips are left out: what a strip leaves free is no room for larger tiles.
    """
    module = launch.recorded.program.module
    if any(remark.about == "split-tiles" and remark.kind == DONE for remark in module_remarks(module)):
        return
    rooms = [launch.chip.memory[memory].size / function.extents[memory] for function in launch.recorded.program.functions
             for memory in ("ub", "cbuf") if function.extents.get(memory)]
    larger = min([LARGER, *rooms])
    tiles = _tiles_of_a_core(launch)
    again = launch.retimed(larger_instructions(larger, launch.chip))
    after = again.launch_us + again.chip.microseconds(again.cycles) * ceil(tiles / larger) * larger / tiles
    yield from _loss_of(launch, after, SMALL_TILES,
                     f"the memories have room for tiles {'at least twice' if larger == LARGER else f'{larger:.1f} times'} as "
                     "large: larger tiles need fewer instructions, copies and waits",
                     _worst(parts, ("compute", "transfer", "latency")), "estimate")


def _tiles_of_a_core(launch: Launch) -> int:
    """Returns how often a core executes the statement that it executes most often of those that access GM, at least 1."""
    most = 1
    for index, stream, _ in launch.recorded.distinct_streams:
        expansion = launch.expansions[index]
        executed: Counter[Location | None] = Counter()
        for event, count in counted(stream).items():
            if any(step.cost.gm for step in expansion.of(event)):
                executed[line_of(expansion.records[number_of(event)].location)] += count
        most = max(most, max(executed.values(), default=0))
    return most * launch.waves


def _atomic_updates(launch: Launch, parts: LaunchBreakdown) -> Iterator[LostTime]:
    """Advises adding up on chip, if a block updates GM atomically many times."""
    count = nbytes = 0
    lines: Counter[Location | None] = Counter()
    for record, step, _, times in _transfers(launch):
        if any(access.adds for access in record.accesses if access.memory == "gm"):
            count, nbytes = count + times, nbytes + step.cost.nbytes * times
            lines[line_of(record.location)] += times
    if count < SEVERAL * launch.blocks:
        return

    def without_updates(record: OpRecord, step: PipeStep) -> PipeStep | None:
        """Removes the atomic updates of GM."""
        updates = any(access.adds for access in record.accesses if access.memory == "gm")
        return None if step.cost.gm and updates else step

    yield from _loss_of(launch, with_steps(launch, without_updates).time_us, "atomic updates",
                     f"{count // launch.blocks} atomic updates of {nbytes // count} bytes on average in each block, and L2 "
                     "executes those of one line one after the other: add up in UB, and update GM once in each block",
                     lines.most_common(1)[0][0], "at most")


def _costly_instructions(launch: Launch, parts: LaunchBreakdown) -> Iterator[LostTime]:
    """Names the instructions that can often be replaced by cheaper ones, if they take much of the time."""
    for name, (cause, remedy) in _REPLACED.items():

        def without(record: OpRecord, step: PipeStep, name: str = name) -> PipeStep | None:
            """Removes the work of the instructions on the Vector pipe."""
            return None if step.kind == RUN and step.pipe == PIPE["V"] and record.mnemonic == name else step

        work = [(reason, us) for (_, reason), us in parts.work.items() if reason.pipe == "V"]
        own = [(reason, us) for reason, us in work if reason.op == name]
        busy, total = sum(us for _, us in own), sum(us for _, us in work)
        if busy > DOMINATES * total:
            longest = longest_line(own)
            yield from _loss_of(launch, with_steps(launch, without).time_us, cause,
                             f"{name} takes {busy / total:.0%} of the work of the Vector cores: {remedy}",
                             longest[0] if longest is not None else None, "at most")


# -- blocks --------------------------------------------------------------------------------------------------------------------


def _order(launch: Launch, parts: LaunchBreakdown) -> Iterator[LostTime]:
    """Advises an order of blocks in which successive blocks read the same data, if L2 does not hold all data."""
    far = sum(part.far * launch.serves[key].far for key, part in launch.moved.items() if not key[1])
    needed = sum(row.needed for row in argument_bytes(launch) if not row.written)
    if launch.recorded.program.global_sync or far < 1.2 * needed or launch.waves < 2:
        return
    best, order = launch.time_us, ""
    for text, blocks in _orders(launch):
        after = launch.retimed(blocks=blocks).time_us
        if after < best:
            best, order = after, text
    yield from _loss_of(launch, best, "block order",
                     f"{far / 2**20:.0f} MB come from HBM although {needed / 2**20:.0f} MB suffice: order the blocks {order} "
                     "(T.use_swizzle on a grid of two axes, or the tile computed from the block's number)")


def _orders(launch: Launch) -> Iterator[tuple[str, list[BlockRun]]]:
    """Yields other orders of the blocks, each with a description: sorted by the offset of their first read in one tensor,
    within bands of several such offsets in another tensor."""
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


def _order_in_a_block(launch: Launch, parts: LaunchBreakdown) -> Iterator[LostTime]:
    """Advises another order of the tiles inside a block, if data that L2 has evicted are read from HBM again.

    This applies if at least two tensors are read many times, so that tiles that read the same part of one of them can be
    processed one after the other.
    """
    rows = [row for row in argument_bytes(launch) if not row.written and row.needed and row.used >= AGAIN * row.needed]
    worst = max(rows, key=lambda row: row.hbm - row.needed, default=None)
    if worst is None or len(rows) < 2 or worst.hbm < FETCHED_AGAIN * worst.needed:
        return
    if launch.waves > 1 or not _stored_again(launch):
        return
    moved = argument_bytes(launch)  # each tensor is read from HBM once, and what is written goes there as before
    traffic = replace(launch.chip.traffic, dirty=sum(row.moved - row.hbm for row in moved if row.written))
    holding = replace(launch.chip, l2=sum(row.moved for row in moved), traffic=traffic)
    yield from _loss_of(launch, launch.retimed(holding, l2_state="cold").time_us, "tile order",
                     f"{worst.name} comes from HBM {worst.hbm / worst.needed:.1f} times, {worst.hbm / 2**20:.0f} MB "
                     f"although {worst.needed / 2**20:.0f} MB suffice, because other data evict its parts from the "
                     f"{launch.chip.l2 >> 20} MB of L2 before they are read again: process tiles that read the same parts one "
                     "after the other, in bands of a few rows of tiles, column by column in each band (use T.use_swizzle, or "
                     "compute the tile from its number)",
                     _most_loaded(launch, worst.name), "at most")


def _stored_again(launch: Launch) -> bool:
    """Whether some statement stores at least two result tiles in each block, on average."""
    stores: Counter[Location | None] = Counter()
    for record, step, _, times in _transfers(launch):
        if any(part.written for part in step.cost.gm):
            stores[line_of(record.location)] += times
    return max(stores.values(), default=0) >= 2 * launch.blocks


def _most_loaded(launch: Launch, name: str) -> Location | None:
    """Returns the source line that moves most bytes of the tensor ``name``; None if there is none."""
    lines: Counter[Location | None] = Counter()
    for record, step, _, times in _transfers(launch):
        if any(access.label == name for access in record.accesses if access.memory == "gm"):
            lines[line_of(record.location)] += step.cost.nbytes * times
    return lines.most_common(1)[0][0] if lines else None


def _few_blocks(launch: Launch, parts: LaunchBreakdown) -> Iterator[LostTime]:
    room = launch.waves * launch.cores
    if launch.recorded.program.global_sync or launch.blocks > 0.85 * room:
        return
    count, equal = f"{launch.blocks} block{'s' * (launch.blocks > 1)}", "as many equal parts as there are cores"
    if launch.waves > 1:
        after = launch.launch_us + launch.chip.microseconds(launch.cycles) * launch.blocks / room
        last = launch.blocks - room + launch.cores
        cause = "uneven waves"
        text = f"the last of {launch.waves} waves has {last} blocks for {launch.cores} cores: divide the work into {equal}"
    else:
        after, blocks = launch.least_us_of_division()
        cause, text = "few blocks", f"{count} for {launch.cores} cores: divide the work into {equal}"
        if blocks < launch.blocks:
            cause = "many blocks"
            text = f"launching a core for each of {count} takes longer than it saves: divide the work among about {blocks}"
        elif blocks < launch.cores:
            text = (f"{count} for {launch.cores} cores: divide the work into about {blocks} equal parts; more cores take longer"
                    " to launch than they save")
    yield from _loss_of(launch, after, cause, text, how="at most")


def _one_vector_core(launch: Launch, parts: LaunchBreakdown) -> Iterator[LostTime]:
    """Advises dividing the Vector work, if in a kernel that also uses Cube cores some Vector cores of a block do much more of
    it than others."""
    functions = launch.recorded.program.functions
    lanes = [(place, index) for place, (index, _) in enumerate(launch.recorded.program.lanes) if functions[index].core == "AIV"]
    mixed = len(lanes) < len(launch.recorded.program.lanes)
    most = launch.chip.aiv_per_aic
    if not lanes or not mixed or most < 2 or launch.recorded.program.global_sync:
        return
    work = [sum(group.timing.busy[place][PIPE["V"]] * group.count for group in launch.groups) for place, _ in lanes]
    work += [0.0] * (most - len(lanes))
    if max(work) < LONE * min(work) or not max(work):
        return
    started = min(launch.cores, launch.blocks) * launch.chip.launch.core_us * (most - len(lanes))
    busy = [one for one in work if LONE * one > max(work)]

    def divided(record: OpRecord, step: PipeStep) -> PipeStep:
        """Changes a step so that the Vector work of the busy cores is divided among all Vector cores of the block."""
        return scaled_work(step, len(busy) / most) if step.kind == RUN and record.core == "AIV" else step

    who = "one of the two Vector cores of a block has" if most == 2 else (
        f"{len(busy)} of the {most} Vector cores of a block {'has' if len(busy) == 1 else 'have'}")
    what = "give each of them half of the rows (with the second index of T.Kernel)" if most == 2 else (
        f"give each of them a part of the rows (with T.Kernel(..., threads={most}))")
    yield from _loss_of(launch, with_steps(launch, divided).time_us + started, "one Vector core",
                     f"{who} {100 * sum(busy) / sum(work):.0f} % of the Vector work: {what}", _worst(parts, ("compute",), "V"))


def _separate_launches(before: Sequence[Launch], later: Launch, workspaces: Collection[int]) -> Iterator[LostTime]:
    """Advises one launch in place of several, if the last of them reads tensors that the others write.

    In one launch, tiles of these tensors stay on chip: they are not loaded, and not stored either if no caller sees the tensor.
    A tensor that several of the launches load is loaded once. If the launches run on different kinds of cores, tiles are handed
    over in GM as before, but both kinds work at the same time.

    Args:
        before: the earlier launches of the call.
        later: the launch that reads.
        workspaces: the positions, among the user's arguments, of arrays that the call does not return.
    """
    users = later.recorded.bound.users
    passed = [buffer for buffer in users if (buffer, False) in later.moved
              and any((buffer, True) in launch.moved for launch in before)]
    earlier = [launch for launch in before if any((buffer, True) in launch.moved for buffer in passed)]
    if not earlier:
        return
    together = (*earlier, later)
    stores = {core for launch in earlier for core, buffer in _transferred(launch, stores=True) if buffer in passed}
    stay = bool(stores & {core for core, buffer in _transferred(later, stores=False) if buffer in passed})
    unseen = [users[position] for position in workspaces if stay and users[position] in passed]
    times, loaded = [], set[tuple[CoreKind, int]]()
    for launch in together:
        own = {(core, buffer) for core, buffer in _transferred(launch, stores=False) if buffer in users}
        again = [buffer for _, buffer in own & loaded]
        loaded |= own
        changed = with_steps(launch, partial(_without_transfers, [*again, *(passed if stay and launch is later else unseen)]))
        times.append(changed.time_us - changed.launch_us)
    after = max(launch.launch_us for launch in together) + (
        sum(times) if stay else later.chip.launch.mixed_us + max(sum(times[:-1]), times[-1]))
    total = sum(launch.time_us for launch in together)
    nbytes = {argument_names(later)[buffer]: later.moved[buffer, False].nbytes for buffer in passed}
    many = f"{len(earlier)} earlier launches" if len(earlier) > 1 else "an earlier launch"
    where = ("stay on chip" if stay else
             f"go from the {'Cube to the Vector' if 'AIC' in stores else 'Vector to the Cube'} core")
    yield LostTime("separate launches",
                   f"{_sentence_start(list(nbytes))} written by {many} and read by this one, "
                   f"{sum(nbytes.values()) / 2**20:.1f} MB: compute all in one T.Kernel, where the tiles {where}",
                   _most_loaded(later, max(nbytes, key=lambda name: nbytes[name])), total, after,
                   "timed again" if stay else "at most")


def _transferred(launch: Launch, *, stores: bool) -> set[tuple[CoreKind, int]]:
    """Returns the tensors that a launch transfers: pairs of the kind of core and the position of the tensor's parameter.

    Args:
        launch: the launch.
        stores: True for the tensors that are stored to, False for those that are loaded.
    """
    return {(record.core, access.buffer) for record, _, _, _ in _transfers(launch) for access in record.accesses
            if access.memory == "gm" and (access.writes if stores else access.reads)}


def _without_transfers(buffers: Collection[int], record: OpRecord, step: PipeStep) -> PipeStep | None:
    """Returns the step; None if it transfers data from or to one of some tensors, given by their parameters' positions."""
    moves = any(access.memory == "gm" and access.buffer in buffers for access in record.accesses)
    return None if step.cost.gm and moves else step


# -- waits ---------------------------------------------------------------------------------------------------------------------


def _scalar(launch: Launch, parts: LaunchBreakdown) -> Iterator[LostTime]:
    place = _worst(parts, ("scalar",))
    if place is None:
        return

    elements = sum(count * times for index, stream, times in launch.recorded.distinct_streams for event,
                   count in counted(stream).items()
                   for step in launch.expansions[index].of(event) if step.kind == RUN and PIPES[step.pipe] == "S")
    yield from _loss_of(launch, with_steps(launch, without_scalar_work).time_us, "scalar work",
                     f"{elements // launch.blocks} elements of a block are loaded or stored one by one: use vector operations "
                     "(kernel.explain() tells why a T.Parallel loop is not vectorised)", place)


def _barriers(launch: Launch, parts: LaunchBreakdown) -> Iterator[LostTime]:
    """Advises removing barriers that the author wrote and that have no effect: without them the launch has no more races than
    with them."""
    program = launch.recorded.program
    candidates = [(index, record.number) for index, function in enumerate(program.functions)
                  for op, record in zip(program.ops(index), function.records, strict=True)
                  if isinstance(record.work, Barrier) and remark_of(op) is None]
    if not candidates or not any(launch.held_us.get((index, number, -1), 0.0) for index, number in candidates):
        return

    def without(dropped: frozenset[tuple[int, int]]) -> Launch:
        """Returns the launch, timed again without the ops of some records.

        Args:
            dropped: for each of these records, the number of its device function and the number of the record.
        """
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
        yield from _loss_of(launch, without(dropped).time_us, "redundant barrier",
                         f"no race appears without the barriers at line{'s' * (len(lines) > 1)} "
                         f"{', '.join(map(str, lines))}: leave them out",
                         line_of(program.functions[worst[0]].records[worst[1]].location))


def _flags(launch: Launch) -> int:
    """Returns the number of flags between cores that a block sets, averaged over the blocks."""
    return sum(count * times for index, stream, times in launch.recorded.distinct_streams for event,
               count in counted(stream).items()
               for step in launch.expansions[index].of(event) if step.kind == CROSS_SET) // launch.blocks


def _hand_overs(launch: Launch, parts: LaunchBreakdown) -> Iterator[LostTime]:
    flags = _flags(launch)
    if flags < SEVERAL:
        return
    yield from _loss_of(launch, with_steps(launch, without_flags).time_us, "hand-overs",
                     f"the Cube and Vector cores set {flags} flags in a block and wait for each other: pass larger tiles from "
                     "core to core, or let iterations overlap (T.Pipelined)", _worst(parts, ("flag",)), "at most")


def _no_overlap(launch: Launch, parts: LaunchBreakdown) -> Iterator[LostTime]:
    """Advises overlapping iterations, if a block repeatedly loads into the same buffer, so that each load must wait until the
    previous tile is no longer needed, and if the memory has room for a second tile."""
    if _flags(launch):
        return
    tiles: dict[Location | None, set[tuple[Space, int, int]]] = defaultdict(set)
    again: Counter[Location | None] = Counter()
    for record, step, event, times in _transfers(launch):
        for access in record.accesses:
            if access.memory != "gm" and access.writes and not any(part.written for part in step.cost.gm):
                tile = footprint(access, event)
                tiles[line_of(record.location)].add((access.memory, tile.offset, tile.nbytes))
                again[line_of(record.location)] += times
    functions = launch.recorded.program.functions
    left = {memory: room.size - max(function.extents.get(memory, 0) for function in functions)
            for memory, room in launch.chip.memory.items()}
    repeated = [place for place, found in tiles.items() if again[place] > launch.blocks and len(found) == 1
                and all(nbytes <= left[memory] for memory, _, nbytes in found)]
    if not repeated:
        return

    def ahead(record: OpRecord, step: PipeStep) -> PipeStep | None:
        """Removes the waits of a pipe for one that takes its tiles: as if each iteration had tiles of its own."""
        if step.kind != WAIT:
            return step
        waits, other = _LOAD_TO_STORE.get(PIPES[step.pipe]), _LOAD_TO_STORE.get(PIPES[step.other])
        return None if waits is not None and other is not None and waits < other else step

    place = _worst(parts, ("transfer", "latency", "HBM", "L2"), "MTE2")
    where = place if place in repeated else repeated[0]
    refusal = _refused_overlap(launch, where)
    remedy = ("use T.Pipelined(num_stages=2), or two alternating buffers" if refusal is None else
              f"{refusal.text}: {refusal.edit}")
    yield from _loss_of(launch, with_steps(launch, ahead).time_us, "no overlap",
                     f"each load waits until the previous tile is no longer needed: {remedy}", where, "at most")


def _refused_overlap(launch: Launch, place: Location | None) -> Remark | None:
    """Returns the remark with which ``pipeline-loops`` refused to overlap the iterations of a loop around the loads of a source
    line; None if there is none. The loop is the author's, or the compiler made it around the work of several blocks.
    """
    program = launch.recorded.program
    loops = set[Location | None]()
    for index, function in enumerate(program.functions):
        for op, record in zip(program.ops(index), function.records, strict=True):
            around = op.parent_op() if line_of(record.location) == place else None
            while around is not None:
                if isinstance(around, scf.ForOp):
                    loops.add(line_of(location_of(around)))
                around = around.parent_op()
    return next((remark for remark in module_remarks(program.module) if remark.about == "pipeline-loops"
                 and remark.kind == REFUSED and remark.place is not None and line_of(remark.place) in loops), None)
