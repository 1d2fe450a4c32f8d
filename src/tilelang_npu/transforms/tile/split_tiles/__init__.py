"""Executes statements on tiles strip by strip, if the tiles do not fit in the memories of a core.

A tile of a GPU kernel, which is spread over the registers of many threads, can be larger than UB. If memory planning fails for
it, the statements that access the tile are executed in a loop over strips of its rows, with buffers of one strip:

::

    T.copy(A[...], x); T.reduce_max(x, m, dim=1); for i, j in T.Parallel(128, 4096): x[i, j] = T.exp(x[i, j] - m[i])
    -> for s in strips: the same for 8 rows

or of its columns, where not even a row fits, or the rows depend on each other. The rewrite is sound because each row of a
result is computed from the same row of the operands (:mod:`.strip_division`), and because no strip reads what another strip
writes. Neither a reduction nor a product is divided along the axis over which it adds up, because the order of the additions
would change. The same rewrite is done where the tiles fit but the temporaries of a ``T.Parallel`` do not, so that it would be
computed point by point.

The pass runs on the traced tile dialect. It changes only buffers whose memory and address the compiler chooses, in kernels in
which the compiler inserts the waits. The number of rows is the largest for which memory planning succeeds.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from xdsl.context import Context
from xdsl.dialects import memref
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from tilelang_npu import target as chips
from tilelang_npu.analysis.buffer_sizes import nbytes_of, spaced
from tilelang_npu.analysis.buffers import is_managed, root_of, space_of, users_of
from tilelang_npu.analysis.locations import lines_of
from tilelang_npu.dialects import tile
from tilelang_npu.dialects.ir.effects import effects_of
from tilelang_npu.dialects.ir.remarks import REFUSED, Points, Strips, module_remarks, record_done
from tilelang_npu.dialects.text import location_of
from tilelang_npu.transforms.infra.plan_trial import PassWithPlanTrial
from tilelang_npu.transforms.tile.split_tiles.strip_division import (
    VIEWS,
    Division,
    NotDivisibleError,
    blocks_within,
    is_product_operand,
)
from tilelang_npu.transforms.tile.split_tiles.strip_loop import emit_strips

_SURE_SHARE = 2
"""Tiles of at most one part in this many of UB surely fit with their temporaries, so that memory planning is not tried."""
_SMALL_SHARE = 32
"""Buffers of at most one part in this many of UB need not be divided."""
_STRIP_COUNTS = (2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 56, 64, 80, 96, 128, 192, 256, 512, 1024)
"""The numbers of strips that are tried."""
_MODES = ((2, True), (2, False), (1, False))
"""The ``num_stages`` of the loop over strips, and whether each loaded buffer must have as many slots, in order of preference.

With two slots, the next strip is loaded while a strip is computed. In a loop of one stage, a loaded buffer can share its bytes
with the buffers of later statements.
"""


@dataclass(frozen=True)
class _Seed:
    """Where a division starts: with an axis of a buffer, or with an axis of a ``T.Parallel``.

    Attributes:
        nbytes: the bytes of the buffer, or of a temporary of the loop.
        axis: the axis.
        buffer: the buffer; None for a loop.
        loop: the loop; None for a buffer.
    """

    nbytes: int
    axis: int
    buffer: SSAValue | None = None
    loop: tile.ParallelOp | None = None


@dataclass(frozen=True)
class _Lack:
    """Why a module does not compile, or not to vector work.

    Attributes:
        text: the reason.
        is_room: whether a memory has no room.
    """

    text: str
    is_room: bool


@dataclass(frozen=True)
class _Strips:
    """How divisions are executed.

    Attributes:
        divisions: the divisions.
        rows: the rows of a strip of each.
        stages: the ``num_stages`` of the loops over strips.
    """

    divisions: Sequence[Division]
    rows: Sequence[int]
    stages: int


@dataclass(frozen=True)
class SplitTiles(PassWithPlanTrial):
    """Executes statements on tiles strip by strip, if the tiles do not fit in the memories of a core.

    Memory planning is tried on copies of the module: without strips first, then with several numbers of rows.
    """

    name = "split-tiles"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if not self.enabled:
            return
        chip = chips.chip(self.chip)
        room = chip.memory["ub"].size
        small = room // _SMALL_SHARE
        launches = [inner for inner in op.walk() if isinstance(inner, tile.LaunchOp)
                    and _estimated_bytes(inner, chip.aiv_per_aic) * _SURE_SHARE > room]
        seeds = [(launch, seed) for launch in launches for seed in _seeds(launch, small)]
        if not _plan(seeds, small):
            return
        lack = self._trial(op.clone(), at_once=False)
        found = self._choose(op, seeds, small) if lack is not None and lack.is_room else None
        if lack is not None and found is not None:
            for division, rows in zip(found.divisions, found.rows, strict=True):
                tiles = ", ".join(_text(each) for each in division.shrunk_allocations()
                                  if nbytes_of(each.result) > small)
                what = tiles or "the temporaries of T.Parallel"
                strips = -(-division.extent // rows)
                record_done(op, self.name, location_of(division.statements[0]),
                            f"{what} do not fit at once ({lack.text}): {lines_of(division.statements)} are executed for "
                            f"{strips} strips of {rows} of the {division.extent} {division.unit}",
                            Strips(strips, rows, division.extent, division.unit))
                emit_strips(division, rows, found.stages)

    def _trial(self, module: ModuleOp, *, at_once: bool) -> _Lack | None:
        """Runs the later passes on a copy of the module; returns why they fail, or what has no room for vector work; else None.

        With ``at_once``, the vector work on all points of a ``T.Parallel`` must have room; else it may be done in parts.
        """
        error = self.try_plan(module).error
        if error is not None:
            return _Lack(error.message, is_room=error.code == "T104")
        for remark in module_remarks(module, Points):
            points = remark.facts
            if isinstance(points, Points) and points.lacking and (at_once or remark.kind == REFUSED or points.rows == 1):
                where = f"line {remark.place.line}" if remark.place is not None else "a T.Parallel"
                text = f"{where} would need {spaced(points.lacking)} more bytes of UB for temporaries of vector work"
                return _Lack(text, is_room=True)
        return None

    def _choose(self, module: ModuleOp, seeds: Sequence[tuple[tile.LaunchOp, _Seed]], small: int) -> _Strips | None:
        """Returns the strips with which everything fits; None where there are none. Rows are tried before columns."""
        for axes in ((0, -1), (-1,)):
            plan = _plan([(launch, seed) for launch, seed in seeds if seed.axis in axes], small)
            for count in range(1, len(plan) + 1):
                part = plan[:count]
                choices = _strip_choices(part)
                # A loop with products has stages of its own, and each strip loads the other matrix again.
                modes = _MODES[-1:] if any(division.has_product for division in part) else _MODES
                if not choices or not self._fits(module, _Strips(part, choices[-1], 1), with_slots=False):
                    continue
                for stages, with_slots in modes:
                    def fits(rows: tuple[int, ...], part: Sequence[Division] = part, stages: int = stages,
                             with_slots: bool = with_slots) -> bool:
                        return self._fits(module, _Strips(part, rows, stages), with_slots=with_slots)

                    if stages == 1 or fits(choices[-1]):
                        # All choices before the first one that fits have more rows, which do not fit either.
                        at = bisect_left(choices[:-1], True, key=fits)
                        return _Strips(part, choices[at], stages)
        return None

    def _fits(self, module: ModuleOp, strips: _Strips, *, with_slots: bool) -> bool:
        """Whether everything fits, and ``with_slots`` also all slots of the buffers of a strip."""
        copied = module.clone()
        twins = dict(zip(module.walk(), copied.walk(), strict=True))
        for division, rows in zip(strips.divisions, strips.rows, strict=True):
            emit_strips(_twin_of(division, twins), rows, strips.stages)
        if self._trial(copied, at_once=True) is not None:
            return False
        lines = {location_of(op) for division in strips.divisions
                 for statement in (*division.statements, *division.shrunk_allocations()) for op in statement.walk()}
        return not with_slots or not any(remark.about == "multi-buffer" and remark.kind == REFUSED and (
            remark.place in lines) for remark in module_remarks(copied))


def _twin_of(division: Division, twins: dict[Operation, Operation]) -> Division:
    """Returns a division of a module as the same division of a copy of the module."""
    def value(old: SSAValue) -> SSAValue:
        assert isinstance(old.owner, Operation)
        return twins[old.owner].results[0]

    statements = [twins[op] for op in division.statements]
    block = statements[0].parent_block()
    assert block is not None
    return Division(block, division.extent, {value(root): axis for root, axis in division.axes.items()},
                    {twins[op]: axis for op, axis in division.points.items()},
                    {(twins[op], index): axis for (op, index), axis in division.operand_axes.items()}, statements,
                    {value(root) for root in division.shrunk})


def _text(allocation: tile.AllocOp) -> str:
    return f"{allocation.label.data} ({spaced(nbytes_of(allocation.result))} bytes)"


def _estimated_bytes(launch: tile.LaunchOp, vector_cores: int) -> int:
    """Returns about how many bytes of UB the tiles of a launch take, with those of the largest temporaries.

    The Vector cores of a block divide the tiles of a kernel that has products too.
    """
    ops = list(launch.walk())
    tiles = sum(nbytes_of(op.result) for op in ops if isinstance(op, tile.AllocOp) and not (
        space_of(op.result) == "shared" and is_product_operand(op.result)))
    temporaries = max((_temporary_bytes(op) + _intermediate_bytes(op) for op in ops if isinstance(op, tile.ParallelOp)),
                      default=0)
    products = [op for op in ops if isinstance(op, tile.GemmOp)]
    # A sum of products that Vector cores change between the products stays in UB, together with the next product.
    added = max((nbytes_of(root) for op in products if _is_changed_by_vector_cores(root := root_of(op.c))), default=0)
    return (tiles + temporaries + added) // (vector_cores if products else 1)


def _is_changed_by_vector_cores(accumulator: SSAValue) -> bool:
    """Whether an operation other than products and fills writes the accumulator of a product."""
    return any(use.writes and root_of(use.value) is accumulator for op in users_of(accumulator)
               if not isinstance(op, (*VIEWS, tile.GemmOp, tile.FillOp)) for use in effects_of(op))


def _temporary_bytes(loop: tile.ParallelOp) -> int:
    """Returns the bytes of a tile of float32 with the points of a loop, for each access to GM."""
    return _point_bytes(loop) * sum(isinstance(op, memref.LoadOp | memref.StoreOp) and space_of(op.memref) == "gm"
                                    for op in loop.walk())


def _intermediate_bytes(loop: tile.ParallelOp) -> int:
    """Returns the bytes of one intermediate result of a loop; 0 if each stored value is computed by at most one operation."""
    stores = sum(isinstance(op, memref.StoreOp) for op in loop.walk())
    computing = sum(not isinstance(op, memref.LoadOp | memref.StoreOp | tile.YieldOp) for op in loop.body.walk())
    return _point_bytes(loop) if computing > stores else 0


def _point_bytes(loop: tile.ParallelOp) -> int:
    """Returns the bytes of a tile of float32 with the points of a loop; 0 if an extent is not constant."""
    extents = loop.mixed_extents()
    known = [extent for extent in extents if isinstance(extent, int)]
    return prod(known) * 4 if len(known) == len(extents) else 0


def _seeds(launch: tile.LaunchOp, small: int) -> list[_Seed]:
    """Returns where divisions of a launch can start: with the first or last axis of a buffer or loop that is not small."""
    found: list[_Seed] = []
    for op in launch.walk():
        if isinstance(op, tile.AllocOp) and is_managed(op.result):
            shape, nbytes = tile.shape_of(op.result), nbytes_of(op.result)
            if nbytes > small:
                found += [_Seed(nbytes, axis, op.result) for axis in (0, -1) if shape[axis] > 1]
        elif isinstance(op, tile.ParallelOp) and (nbytes := _temporary_bytes(op)) > small:
            extents = op.mixed_extents()
            found += [_Seed(nbytes, axis, loop=op) for axis in (0, -1)
                      if isinstance(extents[axis], int) and extents[axis] != 1]
    return found


def _plan(seeds: Sequence[tuple[tile.LaunchOp, _Seed]], small: int) -> list[Division]:
    """Returns divisions of launches that share no statement: rows before columns, and those of the largest buffers first."""
    found: list[Division] = []
    for launch, seed in sorted(seeds, key=lambda each: (-each[1].axis, -each[1].nbytes)):
        division = _division_of(launch, seed, small)
        if division is not None and not any(_overlap(division, other) for other in found):
            found.append(division)
    return found


def _division_of(launch: tile.LaunchOp, seed: _Seed, small: int) -> Division | None:
    """Returns the division from a seed, in the outermost block that has one; None where there is none."""
    for block in blocks_within(launch):
        for threshold in (0, small):
            if seed.buffer is not None:
                shape = tile.shape_of(seed.buffer)
                axis = seed.axis % len(shape)
                division = Division(block, shape[axis], {seed.buffer: axis})
            else:
                assert seed.loop is not None
                if not any(inner is seed.loop for op in block.ops for inner in op.walk()):
                    continue
                extents = seed.loop.mixed_extents()
                axis = seed.axis % len(extents)
                extent = extents[axis]
                assert isinstance(extent, int)
                division = Division(block, extent, {}, {seed.loop: axis})
            try:
                division.find(threshold)
            except NotDivisibleError:
                continue
            if division.saved or division.axes.keys() == set():
                return division
    return None


def _overlap(one: Division, other: Division) -> bool:
    """Whether two divisions have a statement, or one in another, in common."""
    return any(a is b or a.is_ancestor(b) or b.is_ancestor(a) for a in one.statements for b in other.statements)


def _strip_choices(plan: Sequence[Division]) -> list[tuple[int, ...]]:
    """Returns the rows of strips that are tried, the most first: for each division one number."""
    found: list[tuple[int, ...]] = []
    for count in _STRIP_COUNTS:
        rows = tuple(_rounded(-(-division.extent // count), division) for division in plan)
        if all(0 < each < division.extent for each, division in zip(rows, plan, strict=True)) and rows not in found:
            found.append(rows)
    return found


def _rounded(rows: int, division: Division) -> int:
    """Returns a number of rows of a strip, rounded down to a multiple that suits the buffers."""
    unit = division.granularity()
    rows = max(rows, unit)
    for multiple in (64, 8, 2):
        if multiple % unit == 0 and rows >= 2 * multiple:
            return rows - rows % multiple
    return rows - rows % unit


__all__ = ["SplitTiles"]
