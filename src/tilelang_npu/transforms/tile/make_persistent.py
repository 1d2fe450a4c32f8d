"""Launches one block for each core instead of many blocks, each with a loop over its share of the tiles: a persistent kernel.

A launch of more blocks than cores dispatches them one after another: each block begins with empty buffers, so nothing is
loaded before the core has finished its previous block, and the dispatch itself takes time
(docs/hardware.md#launches). The pass replaces

::

    with T.Kernel(1000) as b: BODY   ->   with T.Kernel(48) as core: for b in T.serial(core, 1000, 48): BODY

``hoist-loads`` then moves loads that all tiles share before the loop, and ``pipeline-loops`` lets a core load its next
tile while it computes. Core ``c`` computes the blocks ``c``, ``c + 48``, ``c + 96`` and so on in this order, as when the
blocks are dispatched, so that neighbouring cores still load neighbouring tiles.

The rewrite is sound because blocks are independent: all buffers are allocated in the body, so no value passes from one
iteration to the next. These launches stay as they are:

- launches with at most as many blocks as cores, or a number of blocks that is known only when the kernel runs;
- launches that use the Cube cores, whose loops along K load their operands while they multiply anyway;
- launches with a ``T.Scope``, flags or barriers of the author;
- launches whose result depends on the order of blocks: with atomic operations, output for debugging, signals, other operations
  that access tensors themselves (such as transfers to another card), or loads from a tensor that the launch stores;
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
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import BlockArgument, Operation
from xdsl.passes import ModulePass

from tilelang_npu import target as chips
from tilelang_npu.analysis.accesses import accesses_within
from tilelang_npu.analysis.buffers import root_of, space_of, walk
from tilelang_npu.analysis.cores import core_of_function, put_core
from tilelang_npu.analysis.launch_grids import constant_grid, is_left_to_compiler
from tilelang_npu.analysis.ranges import Ranges
from tilelang_npu.dialects import tile
from tilelang_npu.dialects.ir.remarks import record_done
from tilelang_npu.dialects.text import location_of
from tilelang_npu.target import GM
from tilelang_npu.transforms.infra.launch_blocks import loop_over_blocks

__all__ = ["MakePersistent"]


@dataclass(frozen=True)
class MakePersistent(ModulePass):
    """Launches one block for each Vector core, with a loop over its share of the tiles.

    Attributes:
        chip: the name of the chip, which determines the number of cores.
        enabled: whether the pass does anything.
    """

    name = "make-persistent"
    chip: str = chips.DEFAULT
    enabled: bool = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        functions = [inner for inner in op.ops if isinstance(inner, func.FuncOp) and core_of_function(inner) == "AIV"]
        for launch in [inner for function in functions for inner in function.walk() if isinstance(inner, tile.LaunchOp)
                       ] if self.enabled else ():
            # Without work for a Cube core, the Vector cores of a block are blocks of their own (lower/launch.py).
            share = launch.sub_blocks.value.data if launch.explicit_sub_block is not None else 1
            grid, most = constant_grid(launch), chips.chip(self.chip).aiv // share
            if grid is not None and prod(grid) > most and _is_independent(launch) and _has_equal_short_blocks(launch):
                record_done(op, self.name, location_of(launch), f"{most * share} blocks, one for each Vector core, "
                            f"loop over the work of {prod(grid) * share}")
                put_core(loop_over_blocks(launch, most), "either")


def _is_independent(launch: tile.LaunchOp) -> bool:
    """Whether the result of a launch does not depend on the order of its blocks, and the compiler chooses their cores."""
    return is_left_to_compiler(launch) and not any(map(_orders_blocks, launch.walk())) and not _loads_what_it_stores(launch)


def _orders_blocks(op: Operation) -> bool:
    """Whether the effect of an operation besides its loads and stores depends on the order of blocks."""
    return isinstance(op, tile.PrintfOp | tile.DumpOp | tile.PrintOp | tile.SignalOp) or (
        isinstance(op, tile.CallOp) and any(space_of(root_of(use.value)) == GM for use in accesses_within(op)))


def _loads_what_it_stores(launch: tile.LaunchOp) -> bool:
    """Whether a launch loads from a tensor that it stores, so that a block may read what another one has written.

    An atomic operation reads the tensor that it changes.
    """
    uses = [use for use in accesses_within(launch) if isinstance(root_of(use.value), BlockArgument)]
    return bool({root_of(use.value) for use in uses if use.reads} & {root_of(use.value) for use in uses if use.writes})


def _has_equal_short_blocks(launch: tile.LaunchOp) -> bool:
    """Whether a launch has no branch, no ``while``, and no loop that accesses tensors or whose trip count is not constant."""
    ranges = Ranges()
    return not any(isinstance(op, scf.IfOp | scf.WhileOp)
                   or (isinstance(op, scf.ForOp) and (_accesses_tensors(op) or None in [
                       ranges.constant(bound) for bound in (op.lb, op.ub, op.step)])) for op in walk(launch.body.block))


def _accesses_tensors(loop: scf.ForOp) -> bool:
    return any(isinstance(root_of(use.value), BlockArgument) for use in accesses_within(loop))
