"""Splits a gemm that adds to a value of vector work into a gemm to a temporary and an addition in UB.

A gemm without ``init`` adds to its accumulator. If the accumulator holds a value that vector work wrote (a rescaled result, a
mask, a loaded tile), the accumulator must be in UB, because no path leads from UB to L0C (docs/hardware.md#memories). Such a
gemm writes its product to a temporary in L0C instead, and the temporary is added to the accumulator in UB. If the ``init`` of
the gemm is known only at run time, a branch either adds or copies the temporary. A clear does not count as vector work if it
becomes the ``init`` of the next gemm (``fold-accumulator-clear``); otherwise it is a fill in UB.

The same is done for accumulators that L0C has no room for, such as those of a GPU kernel, which are spread over the registers
of many threads. If the accumulators of a launch are larger than L0C, memory planning is tried. If it fails, it is tried again
with accumulators that several iterations of a loop add to in UB: with each of them alone, from the smallest, and then with
several. The first choice that fits is taken. A product is moved to UB in parts there, of half of its columns each. This changes
the rounding of the sums: L0C rounds after each part of a product, UB after each product. It is done only where the compiler
chooses memories, cores and waits.

The pass runs before memories are inferred, because the temporaries need memories too. It is sound because a gemm is left
unchanged only if on no path vector work was the last to write its accumulator: where paths join, the sets of accumulators that
vector work wrote are united, and loops are analysed until their sets do not change.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import IntegerAttr, MemRefType, ModuleOp, i1
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.rewriter import Rewriter

from tilelang_npu import target as chips
from tilelang_npu.analysis.accumulators import accumulators_started_in, can_fold_clear, is_zero, next_accesses
from tilelang_npu.analysis.buffer_sizes import nbytes_of, sized
from tilelang_npu.analysis.buffers import OPEN_SCOPES, body_of, root_of, space_of
from tilelang_npu.analysis.locations import line_of, location_of
from tilelang_npu.analysis.nesting import is_in_core_scope
from tilelang_npu.analysis.ranges import Ranges
from tilelang_npu.dialects import tile
from tilelang_npu.dialects.ir.effects import effects_of
from tilelang_npu.dialects.ir.remarks import record_done, record_refusal
from tilelang_npu.transforms.infra.optimisations import Refusal
from tilelang_npu.transforms.infra.plan_trial import PassWithPlanTrial, PlanTrial
from tilelang_npu.transforms.infra.tile_temporaries import insert_before, temporary

_MOST_TRIALS = 8
"""The largest number of choices of accumulators in UB for which memory planning is tried."""


_PARTS = 2
"""The number of parts in which the products of an accumulator that L0C has no room for are moved to UB."""


class _VectorWrites:
    """Finds the accumulators that may hold a value that vector work wrote.

    Args:
        accumulators: the buffers to look at.
        in_ub: those that are in UB in any case: their values are always those of vector work.

    Attributes:
        gemms_to_split: gemms that add to such a value.
    """

    def __init__(self, accumulators: set[SSAValue], in_ub: frozenset[SSAValue]) -> None:
        self.accumulators = accumulators
        self.in_ub = in_ub
        self.ranges = Ranges()
        self.gemms_to_split: set[tile.GemmOp] = set()

    def walk_block(self, block: Block, written: frozenset[SSAValue]) -> frozenset[SSAValue]:
        """Walks a block; takes and returns the accumulators that vector work wrote last on some path."""
        for op in block.ops:
            if isinstance(op, (scf.ForOp, scf.WhileOp)):
                entry = written - accumulators_started_in(op, self.ranges) if isinstance(op, scf.ForOp) else written
                while (after := entry | self.walk_block(body_of(op), entry)) != entry:
                    entry = after
                written = entry
            elif op.regions:
                ends = [self.walk_block(region.block, written) for region in op.regions if region.blocks]
                branches = isinstance(op, scf.IfOp) and len(ends) == 2
                written = frozenset().union(*ends) if branches or not isinstance(op, scf.IfOp) else written.union(*ends)
            else:
                written = self._visit_op(op, written)
        return written

    def _visit_op(self, op: Operation, written: frozenset[SSAValue]) -> frozenset[SSAValue]:
        for use in effects_of(op):
            buffer = root_of(use.value)
            if not use.writes or buffer not in self.accumulators:
                continue
            if isinstance(op, tile.GemmOp):
                if use.reads and (buffer in written or buffer in self.in_ub):
                    self.gemms_to_split.add(op)
                if op not in self.gemms_to_split:
                    written -= {buffer}
            elif isinstance(op, tile.FillOp) and can_fold_clear(op, self.ranges):
                written -= {buffer}
            else:
                written |= {buffer}
        return written


def _add_after_gemm(gemm: tile.GemmOp, parts: int = 1) -> None:
    """Replaces a gemm by a gemm into a temporary, and an addition of the temporary to the accumulator.

    Args:
        gemm: the gemm.
        parts: the number of parts with equally many columns in which the temporary is moved to UB and added. With more than
            one, the ``init`` of the gemm must be constant.
    """
    kind = gemm.c.type
    assert isinstance(kind, MemRefType)
    product = temporary(gemm, gemm.c, kind.element_type, "product", tile.ScopeAttr(tile.OpenMemory.FRAGMENT))
    start = insert_before(gemm, ConstantOp(IntegerAttr(1, i1))).results[0]
    insert_before(gemm, tile.GemmOp(gemm.a, gemm.b, product, start, transpose_a=gemm.transpose_a is not None,
                                    transpose_b=gemm.transpose_b is not None))
    owner = gemm.init.owner
    if parts > 1:
        rows, columns = tile.shape_of(gemm.c)
        moved: SSAValue | None = None  # one buffer for all parts, so that they share its bytes
        for part in range(parts):
            held, target = (insert_before(gemm, tile.RegionOp(side, [0, part * columns // parts], [rows, columns // parts]))
                            .results[0] for side in (product, gemm.c))
            if moved is None:
                moved = temporary(gemm, held, kind.element_type, "part")
            insert_before(gemm, tile.CopyOp(held, moved))
            insert_before(gemm, tile.ElementwiseOp("add", [target, moved], target))
        Rewriter.erase_op(gemm)
        return
    added = tile.ElementwiseOp("add", [gemm.c, product], gemm.c)
    if isinstance(owner, ConstantOp):
        insert_before(gemm, added)
    else:
        taken: list[Operation] = [tile.CopyOp(product, gemm.c), scf.YieldOp()]
        other: list[Operation] = [added, scf.YieldOp()]
        for op in (*taken, *other):
            op.location = gemm.location
        insert_before(gemm, scf.IfOp(gemm.init, [], Region(Block(taken)), Region(Block(other))))
    Rewriter.erase_op(gemm)


def why_clear_starts_no_gemm(access: Operation | None) -> Refusal:
    """Returns why a clear of an accumulator cannot become the ``init`` of a gemm.

    Args:
        access: the next access to the accumulator after the clear: a loop that may have no iteration, a branch, or an operation
            that is no gemm; None if there is no access.
    """
    if access is None:
        return Refusal("no operation after the clear in the same loop or branch accesses the accumulator",
                       "pass init=True to the first gemm that writes the accumulator, and remove the clear")
    if isinstance(access, scf.ForOp):
        return Refusal(f"the loop at {line_of(access)}, whose gemm writes the accumulator, possibly has no iteration",
                       "give the loop constant bounds, or pass init=True to its first gemm")
    if isinstance(access, scf.IfOp):
        return Refusal(f"the next access to the accumulator, at {line_of(access)}, is under a condition",
                       "pass init=True to the first gemm, or clear the accumulator under the same condition")
    return Refusal(f"the next access to the accumulator, at {line_of(access)}, is no gemm that adds to all of the accumulator",
                   "clear the accumulator right before the gemm that adds to it")


def _gemms_in(module: ModuleOp) -> list[tile.GemmOp]:
    """Returns the gemms whose accumulators have no memory yet, outside of scopes of one core, in the order of the text."""
    return [gemm for gemm in module.walk() if isinstance(gemm, tile.GemmOp) and gemm.scale_a is None
            and space_of(gemm.c) in OPEN_SCOPES and not is_in_core_scope(gemm)]


def _accumulators_in(module: ModuleOp) -> list[SSAValue]:
    """Returns the accumulators of :func:`_gemms_in`, in the order of their first gemm, which is the same in a copy."""
    return list(dict.fromkeys(root_of(gemm.c) for gemm in _gemms_in(module)))


def _is_divisible(gemm: tile.GemmOp) -> bool:
    """Whether the product of a gemm can be added in parts of whole fractals, each of the same number of columns."""
    shape = tile.shape_of(gemm.c)
    return isinstance(gemm.init.owner, ConstantOp) and len(shape) == 2 and -1 not in shape and shape[1] % (_PARTS * 16) == 0


def _outlives_iteration(accumulator: SSAValue, module: ModuleOp) -> bool:
    """Whether several iterations of a loop add to an accumulator: it has the same bytes of L0C in all of them."""
    ranges = Ranges()
    for gemm in _gemms_in(module):
        parent = gemm.parent_op() if root_of(gemm.c) is accumulator else None
        while parent is not None:
            if isinstance(parent, scf.ForOp) and accumulator not in accumulators_started_in(parent, ranges) and not any(
                    isinstance(op, tile.FillOp) and root_of(op.target) is accumulator for op in parent.walk()):
                return True
            parent = parent.parent_op()
    return False


@dataclass(frozen=True)
class AccumulateInUb(PassWithPlanTrial):
    """Splits a gemm that adds to a value of vector work into a gemm to a temporary and an addition in UB.

    Accumulators for which L0C has no room are then in UB too.
    """

    name = "accumulate-in-ub"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        chosen = self._beyond_l0c(op)
        accumulators = _accumulators_in(op)
        for position in chosen:
            kept = accumulators[position]
            assert isinstance(kept.owner, Operation)
            record_done(op, self.name, location_of(kept.owner),
                        f"L0C has no room for all accumulators: the Vector cores add products to {sized(kept)} in UB")
        self._split_gemms(op, chosen)

    def _beyond_l0c(self, module: ModuleOp) -> tuple[int, ...]:
        """Returns the positions, among the accumulators of a module, of those that move to UB because L0C has no room."""
        by_compiler = self.enabled and self.synchronise and self.cross_synchronise and self.divide and self.reuse
        room = chips.chip(self.chip).memory["cc"].size
        accumulators = _accumulators_in(module)
        if not by_compiler or sum(map(nbytes_of, accumulators)) <= room:
            return ()
        error = self._plan_with(module, ()).error
        if error is None or error.code != "T104":
            return ()
        lasting = [position for position, each in enumerate(accumulators) if _outlives_iteration(each, module)]
        choices = sorted((chosen for count in range(len(lasting)) for chosen in combinations(lasting, count + 1)),
                         key=lambda chosen: (len(chosen), sum(nbytes_of(accumulators[position]) for position in chosen)))
        return next((chosen for chosen in choices[:_MOST_TRIALS] if self._plan_with(module, chosen).error is None), ())

    def _plan_with(self, module: ModuleOp, chosen: tuple[int, ...]) -> PlanTrial:
        """Tries memory planning on a copy of a module with these accumulators in UB."""
        copied = module.clone()
        self._split_gemms(copied, chosen)
        return self.try_plan(copied)

    def _split_gemms(self, module: ModuleOp, chosen: tuple[int, ...]) -> None:
        """Splits the gemms that add to a value of vector work.

        Args:
            module: the module, which is changed.
            chosen: the positions of the accumulators that are in UB in any case.
        """
        accumulators = _accumulators_in(module)
        writers = _VectorWrites(set(accumulators), frozenset(accumulators[position] for position in chosen))
        before = -1
        while len(writers.gemms_to_split) > before:  # the addition of one gemm is a write of vector work for the next
            before = len(writers.gemms_to_split)
            for region in module.regions:
                for block in region.blocks:
                    writers.walk_block(block, frozenset())
        self._report_clears(module, {root_of(gemm.c) for gemm in writers.gemms_to_split}, writers.ranges)
        for gemm in writers.gemms_to_split:
            _add_after_gemm(gemm, _PARTS if root_of(gemm.c) in writers.in_ub and _is_divisible(gemm) else 1)

    def _report_clears(self, module: ModuleOp, gemms_to_split: set[SSAValue], ranges: Ranges) -> None:
        """Records the clears that are the reason for additions in UB, and why they are not the start of a gemm."""
        for fill in [inner for inner in module.walk() if isinstance(inner, tile.FillOp)]:
            if root_of(fill.target) in gemms_to_split and is_zero(fill.value) and not can_fold_clear(fill, ranges):
                chain = list(next_accesses(fill))
                loops = [each for each in chain if isinstance(each, scf.ForOp) and ranges.trip_count(each).low < 1]
                kept = why_clear_starts_no_gemm(next(iter([*loops, *chain[-1:]]), None))
                text = (f"the Vector core adds products to {sized(root_of(fill.target))} in UB, because no gemm's init can "
                        f"replace this clear: {kept.why}")
                record_refusal(module, "fold-accumulator-clear", location_of(fill), text, kept.edit, maker=self.name)
