"""Let a buffer that is only passed on be the buffer that it is passed to.

``T.copy(X[..], a); T.copy(a, b)`` loads a tile in order to copy it: where ``a`` is of no further use, and ``b`` of none before,
both are one buffer. What goes to UB and from there to L1 goes to L1 at once, and a copy from UB to UB takes no time. Sound
because one operation writes the first, whole, in the block of the copy, nothing but the copy reads it, and the second is used
only in this block, from the copy on.

Not what is loaded in a serial loop: there the copy lets the next load begin while work goes on, which is what slots do in a
pipelined one. Nor what is converted as it is loaded, which happens in UB alone. Only buffers that the compiler manages (see
``managed``), not where the author has put work on a core or synchronises, and no accumulators: they have their own memory.

Runs while memories are open.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.dialects.builtin import MemRefType, ModuleOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from tilelang_npu.dialects import tile
from tilelang_npu.dialects.effects import effects_of
from tilelang_npu.dialects.text import location_of
from tilelang_npu.errors import Location
from tilelang_npu.transforms.ir.buffers import root_of, space_of, users_of
from tilelang_npu.transforms.ir.optimisations import Deed
from tilelang_npu.transforms.tile.managed import is_managed, is_on_a_core, overwrites, touches


def _is_passed_on(copy: tile.CopyOp, accumulators: set[SSAValue]) -> bool:
    """Whether one operation fills the source, only the copy reads it, and its destination is new there."""
    source, target = copy.source, copy.target
    block = copy.parent_block()
    writers = [use.operation for use in source.uses if use.operation is not copy]
    if len(writers) != 1 or len(list(source.uses)) != 2 or block is None:
        return False
    (writer,) = writers
    if not (is_managed(source) and is_managed(target)) or _tile(source) != _tile(target) or {source, target} & accumulators:
        return False
    if writer.parent_block() is not block or not writer.is_before_in_block(copy) or not overwrites(writer, source):
        return False
    loads = any(space_of(root_of(use.value)) == "gm" for use in effects_of(writer))
    if loads and isinstance(writer, tile.CopyOp) and _tile(writer.source)[0] != _tile(source)[0]:
        return False  # on the way to L1 nothing is converted
    if copy.transpose is not None or is_on_a_core(copy) or (loads and _is_in_a_serial_loop(copy)):
        return False
    for op in block.ops:
        if op is copy:
            break
        if not isinstance(op, tile.AllocOp) and touches(op, target):
            return False
    return not any(op.name.startswith("hivm.") for op in block.ops) and all(_is_below(user, copy) for user in users_of(target))


def _tile(value: SSAValue) -> tuple[Attribute, tuple[int, ...]]:
    kind = value.type
    assert isinstance(kind, MemRefType)
    return kind.element_type, tile.shape_of(value)


def _is_in_a_serial_loop(op: Operation) -> bool:
    parent = op.parent_op()
    while parent is not None and not isinstance(parent, (scf.ForOp, scf.WhileOp)):
        parent = parent.parent_op()
    return parent is not None and not (isinstance(parent, scf.ForOp) and tile.stages_of(parent) > 1)


def _is_below(user: Operation, copy: tile.CopyOp) -> bool:
    """Whether an operation is in the block of the copy, or inside of one that is."""
    found: Operation | None = user
    while found is not None and found.parent_block() is not copy.parent_block():
        found = found.parent_op()
    return found is not None


@dataclass(frozen=True)
class CollapseCopies(ModulePass):
    """The pass; ``collapse`` is whether it does anything."""

    name = "collapse-copies"
    collapse: bool = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for _ in self._collapsed(op):
            pass

    def deeds(self, module: ModuleOp) -> Iterator[Deed]:
        """See ``Telling``."""
        for where, text in self._collapsed(module.clone()):
            yield Deed(self.name, where, text)

    def _collapsed(self, op: ModuleOp) -> Iterator[tuple[Location | None, str]]:
        """Run; where each copy is, and which buffers became one."""
        accumulators = {root_of(inner.c) for inner in op.walk() if isinstance(inner, tile.GemmOp)}
        for copy in [inner for inner in op.walk() if isinstance(inner, tile.CopyOp)] if self.collapse else ():
            if _is_passed_on(copy, accumulators):
                source, target = copy.source.owner, copy.target.owner
                assert isinstance(source, tile.AllocOp) and isinstance(target, tile.AllocOp)
                home = copy.parent_block()
                assert home is not None
                yield location_of(copy), f"{source.label.data} and {target.label.data} are one buffer"
                Rewriter.erase_op(copy)
                source.result.replace_all_uses_with(target.result)
                if target.parent_block() is home:  # the first use is further up now
                    home.detach_op(target)
                    Rewriter().insert_op(target, InsertPoint.at_start(home))
                Rewriter.erase_op(source)


__all__ = ["CollapseCopies"]
