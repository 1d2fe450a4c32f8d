"""Whether the buffers of a kernel fit in their memories without sharing bytes."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp

from tilelang_npu.analysis.buffer_sizes import nbytes_of
from tilelang_npu.analysis.buffers import root_of, space_of
from tilelang_npu.dialects import tile
from tilelang_npu.target import Chip


def copied_buffers(loop: scf.ForOp) -> set[tile.AllocOp]:
    """Returns the buffers on chip that a loop copies from or to another memory."""
    ends = [(value, other) for op in loop.walk() if isinstance(op, tile.CopyOp)
            for value, other in ((op.source, op.target), (op.target, op.source))]
    return {owner for value, other in ends
            if isinstance(owner := root_of(value).owner, tile.AllocOp) and space_of(value) != space_of(other)}


def fit_side_by_side(module: ModuleOp, chip: Chip, more_slots: Mapping[tile.AllocOp, int] = MappingProxyType({})) -> bool:
    """Whether all buffers fit in their memories without sharing bytes, with the slots that pipelined loops give them.

    Args:
        module: a module in which memories are known.
        chip: the chip.
        more_slots: the numbers of slots that buffers would get besides.
    """
    slots = dict(more_slots)
    for op in module.walk():
        if isinstance(op, scf.ForOp) and tile.stages_of(op) > 1:
            for each in copied_buffers(op):
                slots[each] = max(slots.get(each, 1), tile.stages_of(op))
    for space, memory in chip.memory.items():
        sizes = {op: nbytes_of(op.result) for op in module.walk()
                 if isinstance(op, tile.AllocOp) and space_of(op.result) == space}
        # As many bytes again as the largest buffer has are for scratch of operations.
        if sum(size * slots.get(op, 1) for op, size in sizes.items()) + max(sizes.values(), default=0) > memory.size:
            return False
    return True


__all__ = ["copied_buffers", "fit_side_by_side"]
