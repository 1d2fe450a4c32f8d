"""Launches one block for each core instead of many blocks, each with a loop over its share of the tiles: a persistent kernel.

A launch of more blocks than cores dispatches them one after another: each block begins with empty buffers, so nothing is
loaded before the core has finished its previous block, and the dispatch itself takes time
(docs/hardware.md#launches). The pass replaces

::

    with T.Kernel(1000) as b: BODY   ->   with T.Kernel(48) as core: for b in T.serial(core, 1000, 48): BODY

``hoist-loads`` then moves loads that all tiles share in front of the loop, and ``pipeline-loops`` lets a core load its next
tile while it computes. Core ``c`` computes the blocks ``c``, ``c + 48``, ``c + 96`` and so on in this order, as when the
blocks are dispatched, so that neighbouring cores still load neighbouring tiles.

The rewrite is sound because blocks are independent: all buffers are allocated in the body, so no value passes from one
iteration to the next. These launches stay as they are:

- launches with at most as many blocks as cores, or a number of blocks that is known only when the kernel runs;
- launches that use the Cube cores, whose loops along K load their operands while they multiply anyway;
- launches with a ``T.Scope``, flags or barriers of the author;
- launches in which the order of blocks can be seen: with atomic operations, output for debugging, signals, or accesses to
  another card, or with loads from a tensor that the launch stores;
- launches whose blocks loop over tiles of tensors: such loops overlap already, and a block is long. If the cores wait for HBM,
  it is then better that each takes its next block when it is free;
- launches with branches, ``while`` loops or loops of a number of iterations that is not constant: blocks may differ in length.

The pass runs once the cores are assigned and rows are divided between the Vector cores of a block, and before the passes that
move loads out of loops and pipeline loops.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from xdsl.context import Context
from xdsl.dialects import func, scf
from xdsl.dialects.builtin import IndexType, ModuleOp
from xdsl.ir import Block, BlockArgument, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint

from tilelang_npu import target as chips
from tilelang_npu.analysis.accesses import accesses_within
from tilelang_npu.analysis.buffers import root_of, space_of, walk
from tilelang_npu.analysis.cores import core_of_function, put_core
from tilelang_npu.analysis.ranges import Ranges
from tilelang_npu.dialects import tile
from tilelang_npu.dialects.ir.effects import ATOMIC
from tilelang_npu.dialects.ir.remarks import record_done
from tilelang_npu.dialects.text import location_of
from tilelang_npu.target import GM
from tilelang_npu.transforms.infra.grid_position import grid_position
from tilelang_npu.transforms.infra.op_builder import OpBuilder

__all__ = ["MakePersistent"]


def _orders_blocks(op: Operation) -> bool:
    """Whether the order of blocks can be seen by what an operation does, or its author placed it on a core."""
    if isinstance(op, tile.OnCoreOp | tile.ByCoreOp | tile.PrintfOp | tile.DumpOp | tile.PrintOp | tile.SignalOp):
        return True
    atomic = (isinstance(op, tile.CopyOp) and op.atomic is not None) or ATOMIC in op.attributes
    return atomic or op.name.startswith("hivm.") or (isinstance(op, tile.CallOp) and any(
        space_of(root_of(use.value)) == GM for use in accesses_within(op)))


def _loads_what_it_stores(launch: tile.LaunchOp) -> bool:
    """Whether a launch loads from a tensor that it stores, so that a block may read what another one has written."""
    uses = [use for use in accesses_within(launch) if isinstance(root_of(use.value), BlockArgument)]
    return bool({root_of(use.value) for use in uses if use.reads} & {root_of(use.value) for use in uses if use.writes})


@dataclass(frozen=True)
class MakePersistent(ModulePass):
    """Launches one block for each core, with a loop over its share of the tiles.

    Attributes:
        chip: the name of the chip, which determines the number of cores.
        enabled: whether the pass does anything.
    """

    name = "make-persistent"
    chip: str = chips.DEFAULT
    enabled: bool = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in [inner for inner in op.ops if isinstance(inner, func.FuncOp)] if self.enabled else ():
            for launch in [inner for inner in function.walk() if isinstance(inner, tile.LaunchOp)]:
                # Without work for a Cube core, the Vector cores of a block are blocks of their own (lower/launch.py).
                share = launch.sub_blocks.value.data if launch.explicit_sub_block is not None else 1
                blocks, most = _constant_blocks(launch), chips.chip(self.chip).aiv // share
                if (blocks is not None and blocks > most and core_of_function(function) == "AIV"
                        and _is_independent(launch) and _has_equal_short_blocks(launch)):
                    record_done(op, self.name, location_of(launch), f"{most * share} blocks, one for each Vector core, "
                                f"loop over the work of {blocks * share}")
                    _loop_over_blocks(function, launch, blocks, most)


def _constant_blocks(launch: tile.LaunchOp) -> int | None:
    """Returns the number of blocks of a launch; None if it is known only when the kernel runs."""
    ranges = Ranges()
    sizes = [ranges.constant(size) for size in launch.grid]
    return prod(size for size in sizes if size is not None) if None not in sizes else None


def _is_independent(launch: tile.LaunchOp) -> bool:
    """Whether a block of a launch can follow another one on the same core without a difference that can be seen."""
    return not any(map(_orders_blocks, walk(launch.body.block))) and not _loads_what_it_stores(launch)


def _has_equal_short_blocks(launch: tile.LaunchOp) -> bool:
    """Whether all blocks of a launch execute the same operations, and access each tile of a tensor once."""
    ranges = Ranges()
    return not any(isinstance(op, scf.IfOp | scf.WhileOp)
                   or (isinstance(op, scf.ForOp) and (_accesses_tensors(op) or None in [
                       ranges.constant(bound) for bound in (op.lb, op.ub, op.step)])) for op in walk(launch.body.block))


def _accesses_tensors(loop: scf.ForOp) -> bool:
    return any(isinstance(root_of(use.value), BlockArgument) for use in accesses_within(loop))


def _loop_over_blocks(function: func.FuncOp, launch: tile.LaunchOp, blocks: int, cores: int) -> None:
    """Moves the body of a launch into a loop over the blocks that a core computes."""
    old, ranges = launch.body.block, Ranges()
    sizes = [ranges.constant(size) for size in launch.grid]
    vids = old.args[len(sizes):]  # the index of the Vector core
    made, inner = Block(arg_types=[IndexType()] * (1 + len(vids))), Block(arg_types=[IndexType()])
    made.args[0].name_hint, inner.args[0].name_hint = "core", "block"
    emit = OpBuilder(function.body.block)
    emit.location = launch.location
    for statement in list(old.ops):
        old.detach_op(statement)
        inner.add_op(statement)
    head = inner.first_op
    emit.point = InsertPoint.before(head) if head is not None else InsertPoint.at_end(inner)
    for place, argument in zip(grid_position(emit, launch, [size for size in sizes if size is not None], inner.args[0]),
                               old.args[:len(sizes)], strict=True):
        if isinstance(place, SSAValue) and argument.name_hint is not None:
            place.name_hint = argument.name_hint
        argument.replace_all_uses_with(emit.value(place))
    for vid, argument in zip(vids, made.args[1:], strict=True):
        argument.name_hint = vid.name_hint
        vid.replace_all_uses_with(argument)
    with emit.inside(inner):
        emit.insert(scf.YieldOp())
    emit.point = InsertPoint.at_end(made)
    loop = emit.insert(scf.ForOp(made.args[0], emit.value(blocks), emit.value(cores), [], inner))
    put_core(loop, "either")
    launch.body.detach_block(old)
    launch.body.add_block(made)
    launch.operands = [emit.value(cores)]
    launch.properties.pop("panel", None)
    launch.properties.pop("upright", None)
