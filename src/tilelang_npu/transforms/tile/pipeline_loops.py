"""Gives two stages to serial loops that load tiles, as if the author had written ``T.Pipelined(..., num_stages=2)``.

The loads of a serial loop wait until the previous iteration no longer needs the tiles, unless the author wrote ``T.Pipelined``.
This pass sets ``num_stages=2`` on such loops. ``sink-buffers`` then gives the loaded tiles two slots, and
``overlap-iterations`` lets the Cube core and the Vector cores work on different iterations.

The rewrite is sound because ``num_stages`` promises nothing: the later passes prove for each buffer that its contents die
within an iteration before they give it slots, and order all other accesses as in the source, also those to tensors in GM that
a later iteration reads.

The pass leaves these loops as they are:

- loops on which the author set ``num_stages``, a schedule or ``cross_interval``, loops around them, and loops inside of them;
- loops around other loops whose buffers can have slots, because the inner loops need the room;
- loops with at most one iteration, and loops in which each loaded buffer has an address of the author or carries a value from
  one iteration to the next, because then no buffer would get slots;
- loops of the Vector cores that slots would not make faster: if small loads are issued after a wait of the scalar unit in each
  iteration, or if the cores together already load as fast as HBM gives;
- all loops of a kernel that has a ``T.Scope``, a barrier or a flag of the author.

Slots take memory. If the buffers with their slots possibly do not fit side by side, memory planning is tried on copies of the
module, with the stages and without. The loops keep the stages only if the plan fits, no buffer has fewer slots than it should,
and no more buffers share bytes such that operations wait for each other. If the plan of all loops is refused, the loops are
tried one by one.

The pass runs after ``hoist-loads``, because a load that leaves the loop needs no slots, and before the passes that treat the
buffers of pipelined loops in another way.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf, prod

from xdsl.context import Context
from xdsl.dialects import memref, scf
from xdsl.dialects.builtin import IntegerAttr, MemRefType, ModuleOp, i64
from xdsl.ir import Operation, SSAValue

from tilelang_npu import target as chips
from tilelang_npu.analysis.buffer_sizes import nbytes_of
from tilelang_npu.analysis.buffers import element_bytes, root_of, space_of
from tilelang_npu.analysis.cores import core_of, function_of, has_core
from tilelang_npu.analysis.first_writes import is_dead_after, may_read_earlier_value, reads_only_own_writes
from tilelang_npu.analysis.launch_grids import constant_grid, is_left_to_compiler
from tilelang_npu.analysis.nesting import launch_of, loop_around
from tilelang_npu.analysis.ranges import Ranges
from tilelang_npu.analysis.room import copied_buffers, fit_side_by_side
from tilelang_npu.dialects import tile
from tilelang_npu.dialects.ir.changes import Smaller
from tilelang_npu.dialects.ir.effects import effects_of
from tilelang_npu.dialects.ir.remarks import record_done, record_refusal
from tilelang_npu.dialects.text import location_of
from tilelang_npu.ops import rate_of
from tilelang_npu.target import GM, filled_from
from tilelang_npu.target.chip_data import REPEAT_BYTES, Move
from tilelang_npu.transforms.infra.plan_trial import PassWithPlanTrial, PlanTrial

_STAGES = 2
"""The ``num_stages`` of a loop that the pass pipelines: one iteration loads its tiles while another one works on its own."""
_CLEARLY_LESS = 0.7
"""A core whose loads and work take less than this share of the time that HBM needs for the loads waits for HBM anyway."""
_SHORT = 0.25
"""Loads that take less than this share of their latency are short."""
_COPY = "copy"
"""The row of the rate table for copies within UB."""
_WIDE = 4
"""Elements of this many bytes or more take the slope of 32 bits of a vector instruction."""


def _is_annotated(loop: Operation) -> bool:
    """Whether the author said how the iterations of a loop overlap."""
    return any(name in loop.attributes for name in (tile.NUM_STAGES, tile.SCHEDULE, tile.CROSS_INTERVAL))


def _loads_of(loop: Operation) -> Iterator[tile.CopyOp]:
    """Yields the copies in a loop, also in nested ones, that load a tile from GM to a buffer that is filled from GM."""
    for op in loop.walk():
        if (isinstance(op, tile.CopyOp) and isinstance(root_of(op.target).owner, tile.AllocOp)
                and space_of(root_of(op.source)) == GM and space_of(root_of(op.target)) in filled_from(GM)):
            yield op


def _can_have_slots(load: tile.CopyOp, loop: scf.ForOp, ranges: Ranges) -> bool:
    """Whether the contents of a loaded buffer die within an iteration of a loop, so that iterations can use different slots."""
    buffer, block = root_of(load.target), loop.body.block
    assert isinstance(buffer.owner, tile.AllocOp)
    return buffer.owner.address is None and (loop.is_ancestor(buffer.owner) or is_dead_after(loop, buffer, ranges)) and (
        not may_read_earlier_value(block.ops, buffer, ranges) or reads_only_own_writes(block, buffer))


def _loads_tiles_to_slots(loop: scf.ForOp, ranges: Ranges) -> bool:
    """Whether a loop with several iterations loads a buffer that can have slots."""
    return ranges.trip_count(loop).high > 1 and any(_can_have_slots(load, loop, ranges) for load in _loads_of(loop))


def _is_serial_loop_with_loads(loop: scf.ForOp, chip: chips.Chip, ranges: Ranges) -> bool:
    """Whether the pass may pipeline a loop, if there is room."""
    inner = [op for op in loop.walk() if isinstance(op, scf.ForOp) and op is not loop]
    around, outer = loop_around(loop), list[Operation]()
    while around is not None:
        outer.append(around)
        around = loop_around(around)
    return (not any(map(_is_annotated, (loop, *inner, *outer))) and _loads_tiles_to_slots(loop, ranges)
            and not any(_loads_tiles_to_slots(each, ranges) for each in inner) and not _gains_nothing(loop, chip, ranges))


def _load_bytes(loop: scf.ForOp) -> int:
    """Returns the bytes of the tiles that a loop loads in an iteration, without those of nested loops and branches."""
    return sum(nbytes_of(op.target) for op in loop.body.block.ops
               if isinstance(op, tile.CopyOp) and space_of(root_of(op.source)) == GM and -1 not in tile.shape_of(op.target))


def _waits_for_scalars(loop: scf.ForOp, move: Move) -> bool:
    """Whether a loop with small loads computes a tile in each iteration and reads an element of the tile as a scalar.

    The scalar unit issues the instructions of a core in program order. It waits for the computation in each iteration, and
    issues the loads of the next iteration only after this wait, with slots or without. If the loads are short, slots then gain
    less than the computation of their numbers costs.
    """
    def is_computed(buffer: SSAValue) -> bool:
        return any(use.writes and root_of(use.value) is buffer and not isinstance(op, tile.CopyOp)
                   for op in loop.walk() if not op.regions for use in effects_of(op))

    return _load_bytes(loop) < _SHORT * move.fixed * move.sustained and any(
        isinstance(op, memref.LoadOp) and space_of(buffer := root_of(op.memref)) in filled_from(GM) and is_computed(buffer)
        for op in loop.walk())


def _is_bound_by_hbm(loop: scf.ForOp, chip: chips.Chip, move: Move, ranges: Ranges) -> bool:
    """Whether the cores together load as fast as HBM gives, although the loads of each core wait for its own work.

    Slots then gain nothing. The loads of an iteration can start when the tiles of the previous iteration are read. If a core
    alone reaches this point in clearly less time than HBM takes for the loads of all cores, the loads of other cores fill the
    gaps. Only loops of loads, stores and elementwise operations on tensors that do not fit in L2 are considered.
    """
    launch = launch_of(loop)
    kernel = function_of(launch) if launch is not None else None
    if launch is None or kernel is None:
        return False
    grid = constant_grid(launch)
    tensors = [argument for argument in kernel.body.block.args if isinstance(argument.type, MemRefType)]
    if grid is None or any(-1 in tile.shape_of(each) for each in tensors) or sum(map(nbytes_of, tensors)) <= chip.l2:
        return False
    cycles, until_read, loaded = 0.0, 0.0, set[SSAValue]()
    for op in loop.body.block.ops:
        uses = list(effects_of(op))
        if isinstance(op, tile.CopyOp) and space_of(root_of(op.source)) == GM:
            loaded.add(root_of(op.target))
            continue
        if isinstance(op, tile.CopyOp) and space_of(root_of(op.target)) == GM:
            if root_of(op.source) in loaded:
                return False
            continue
        if op.regions:
            return False
        if (isinstance(op, (tile.ElementwiseOp, tile.CopyOp)) and space_of(op.target) == "ub"
                and -1 not in tile.shape_of(op.target)):
            rate = rate_of(chip, op.entry().cost if isinstance(op, tile.ElementwiseOp) else _COPY)
            slope = rate.slope32 if element_bytes(op.target) >= _WIDE else rate.slope16
            cycles += rate.fixed + slope * nbytes_of(op.target) / REPEAT_BYTES
        elif uses:
            cycles = inf
        if any(use.reads and root_of(use.value) in loaded for use in uses):
            until_read = cycles
    cores, loads = min(prod(grid) * launch.sub_blocks.value.data, chip.aiv), _load_bytes(loop)
    alone = (move.fixed + loads / move.sustained + until_read) / chip.clock
    return alone < _CLEARLY_LESS * cores * loads / chip.traffic.hbm_read


def _gains_nothing(loop: scf.ForOp, chip: chips.Chip, ranges: Ranges) -> bool:
    """Whether the Vector cores would execute a loop in about the same time with slots."""
    path = chip.paths.get("gm_ub")
    if path is None or path.move is None or any(space_of(load.target) != "ub" for load in _loads_of(loop)):
        return False
    return _waits_for_scalars(loop, path.move) or _is_bound_by_hbm(loop, chip, path.move, ranges)


def _fit_side_by_side(module: ModuleOp, loops: Sequence[scf.ForOp], chip: chips.Chip) -> bool:
    """Whether all buffers fit in their memories without sharing bytes, with the slots that loops would give them.

    If not, or if both cores work in a loop and pass values to each other, memory planning has to be tried.
    """
    if any({"AIC", "AIV"} <= {core_of(op) for op in loop.walk() if not op.regions and has_core(op)} for loop in loops):
        return False
    return fit_side_by_side(module, chip, dict.fromkeys((each for loop in loops for each in copied_buffers(loop)), _STAGES))


def _set_stages(loops: Sequence[scf.ForOp]) -> None:
    for loop in loops:
        loop.attributes[tile.NUM_STAGES] = IntegerAttr(_STAGES, i64)


@dataclass(frozen=True)
class PipelineLoops(PassWithPlanTrial):
    """Gives two stages to serial loops that load tiles from GM, if memory planning has room for a second slot of the tiles.

    Loops that the author pipelined or scheduled, and kernels in which the author synchronises or uses ``T.Scope``, stay as they
    are.
    """

    name = "pipeline-loops"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        chip, ranges = chips.chip(self.chip), Ranges()
        loops = [loop for launch in op.walk() if isinstance(launch, tile.LaunchOp) and is_left_to_compiler(launch)
                 for loop in launch.walk() if isinstance(loop, scf.ForOp) and _is_serial_loop_with_loads(loop, chip, ranges)
                 ] if self.enabled else []
        taken = self._loops_with_room(op, loops)
        for loop in loops:
            if loop in taken:
                record_done(op, self.name, location_of(loop),
                            f"the loop runs as T.Pipelined with num_stages={_STAGES}, because it loads tiles")

    def _loops_with_room(self, module: ModuleOp, loops: list[scf.ForOp]) -> list[scf.ForOp]:
        """Gives stages to those loops whose buffers have room for slots; returns these loops."""
        if not loops or _fit_side_by_side(module, loops, chips.chip(self.chip)):
            _set_stages(loops)
            return loops
        serial = self._try(module, [])
        taken: list[scf.ForOp] = []
        for tried in [loops, *([loop] for loop in loops if len(loops) > 1)]:
            trial = self._try(module, tried)
            if (why := trial.why_worse_than(serial)) is None:
                _set_stages(tried)
                taken += tried
                if len(tried) == len(loops):
                    break
            elif len(tried) == 1:
                self._report_refusal(module, tried[0], why)
        return taken

    def _try(self, module: ModuleOp, loops: Sequence[scf.ForOp]) -> PlanTrial:
        """Tries memory planning on a copy of a module in which some more loops have stages."""
        copied = module.clone()
        twins = dict(zip(module.walk(), copied.walk(), strict=True))
        _set_stages([twin for loop in loops if isinstance(twin := twins[loop], scf.ForOp)])
        return self.try_plan(copied)

    def _report_refusal(self, module: ModuleOp, loop: scf.ForOp, why: str) -> None:
        places = tuple(dict.fromkeys(location_of(each) for each in copied_buffers(loop)))
        record_refusal(module, self.name, location_of(loop), f"the iterations of the loop do not overlap: {why}",
                       "shrink the tiles that the loop loads and stores", change=Smaller(places))


__all__ = ["PipelineLoops"]
