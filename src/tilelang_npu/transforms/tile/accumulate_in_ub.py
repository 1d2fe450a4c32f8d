"""Add a product to what is in UB by vector work: L0C takes nothing but products.

A gemm without ``init`` adds to its accumulator. What vector work has written there (a rescaled result, a mask, a loaded tile)
has no way into L0C (docs/hardware.md#memories), so such a gemm writes to a buffer of its own, which is then added; where its
``init`` is only known at run time, added or taken. A clear is no reason where it becomes the ``init`` of the gemm that comes
next (``fold-accumulator-clear``); where it cannot, it is a fill in UB like any other.

Runs before memories are inferred: what it makes has memories to infer. Sound because a gemm is left alone only where no
path brings what vector work wrote: at joins the writers are united, around loops until nothing changes.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import IntegerAttr, MemRefType, ModuleOp, i1
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from tilelang_npu.dialects import tile
from tilelang_npu.dialects.ir.effects import effects_of
from tilelang_npu.dialects.ir.remarks import record_refusal
from tilelang_npu.transforms.ir.buffers import body_of, root_of, space_of
from tilelang_npu.transforms.ir.locations import location_of
from tilelang_npu.transforms.ir.ranges import Ranges
from tilelang_npu.transforms.ir.sizes import sized
from tilelang_npu.transforms.tile.accumulators import folds, followers, is_zero, not_started, restarted
from tilelang_npu.transforms.tile.tile_temporaries import insert_before, temporary

_OPEN = ("shared", "fragment")


class _Writers:
    """Which accumulators may hold what vector work wrote."""

    def __init__(self, accumulators: set[SSAValue]) -> None:
        self.accumulators = accumulators
        self.ranges = Ranges()
        self.late: set[tile.GemmOp] = set()
        """Gemms that add to such a value."""

    def block(self, block: Block, vector: frozenset[SSAValue]) -> frozenset[SSAValue]:
        """Walk a block; from and to the accumulators that vector work wrote last on some path."""
        for op in block.ops:
            if isinstance(op, (scf.ForOp, scf.WhileOp)):
                entry = vector - restarted(op, self.ranges) if isinstance(op, scf.ForOp) else vector
                while (after := entry | self.block(body_of(op), entry)) != entry:
                    entry = after
                vector = entry
            elif op.regions:
                ends = [self.block(region.block, vector) for region in op.regions if region.blocks]
                branches = isinstance(op, scf.IfOp) and len(ends) == 2
                vector = frozenset().union(*ends) if branches or not isinstance(op, scf.IfOp) else vector.union(*ends)
            else:
                vector = self._operation(op, vector)
        return vector

    def _operation(self, op: Operation, vector: frozenset[SSAValue]) -> frozenset[SSAValue]:
        for use in effects_of(op):
            buffer = root_of(use.value)
            if not use.writes or buffer not in self.accumulators:
                continue
            if isinstance(op, tile.GemmOp):
                if use.reads and buffer in vector:
                    self.late.add(op)
                if op not in self.late:
                    vector -= {buffer}
            elif isinstance(op, tile.FillOp) and folds(op, self.ranges):
                vector -= {buffer}
            else:
                vector |= {buffer}
        return vector


def _split(gemm: tile.GemmOp) -> None:
    """The product in a buffer of its own, and what becomes of it."""
    kind = gemm.c.type
    assert isinstance(kind, MemRefType)
    product = temporary(gemm, gemm.c, kind.element_type, "product", tile.ScopeAttr(tile.OpenMemory.FRAGMENT))
    start = insert_before(gemm, ConstantOp(IntegerAttr(1, i1))).results[0]
    insert_before(gemm, tile.GemmOp(gemm.a, gemm.b, product, start, transpose_a=gemm.transpose_a is not None,
                                    transpose_b=gemm.transpose_b is not None))
    owner = gemm.init.owner
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


@dataclass(frozen=True)
class AccumulateInUb(ModulePass):
    """The pass; see the module's text."""

    name = "accumulate-in-ub"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        free = [gemm for gemm in op.walk() if isinstance(gemm, tile.GemmOp) and space_of(gemm.c) in _OPEN
                and not _on_core(gemm)]
        writers = _Writers({root_of(gemm.c) for gemm in free})
        before = -1
        while len(writers.late) > before:  # a gemm that adds by vector work makes its accumulator one that vector work wrote
            before = len(writers.late)
            for region in op.regions:
                for block in region.blocks:
                    writers.block(block, frozenset())
        self._tell(op, {root_of(gemm.c) for gemm in writers.late}, writers.ranges)
        for gemm in writers.late:
            _split(gemm)

    def _tell(self, module: ModuleOp, late: set[SSAValue], ranges: Ranges) -> None:
        """Say which clears are the reason, and why they are not the start of a gemm."""
        for fill in [inner for inner in module.walk() if isinstance(inner, tile.FillOp)]:
            if root_of(fill.target) in late and is_zero(fill.value) and not folds(fill, ranges):
                chain = list(followers(fill))
                loops = [each for each in chain if isinstance(each, scf.ForOp) and ranges.trip_count(each).low < 1]
                kept = not_started(next(iter([*loops, *chain[-1:]]), None))
                text = f"products are added to {sized(root_of(fill.target))} in UB, where it is cleared: {kept.why}"
                record_refusal(module, "fold-accumulator-clear", location_of(fill), text, kept.edit, maker=self.name)


def _on_core(op: Operation) -> bool:
    """Whether the author has put an operation on a core."""
    parent = op.parent_op()
    while parent is not None and not isinstance(parent, tile.OnCoreOp):
        parent = parent.parent_op()
    return parent is not None
