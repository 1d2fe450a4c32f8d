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

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.dialects.builtin import MemRefType, ModuleOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from tilelang_npu.dialects import tile
from tilelang_npu.dialects.ir.changes import OwnBuffer, Stages
from tilelang_npu.dialects.ir.effects import effects_of
from tilelang_npu.dialects.ir.remarks import record_done, record_refusal
from tilelang_npu.dialects.text import location_of
from tilelang_npu.errors import Location
from tilelang_npu.transforms.ir.buffers import root_of, space_of, users_of
from tilelang_npu.transforms.ir.locations import line_of, lines_of
from tilelang_npu.transforms.ir.optimisations import Refusal
from tilelang_npu.transforms.ir.sizes import sized
from tilelang_npu.transforms.tile.managed import is_managed, is_on_a_core, overwrites, touches
from tilelang_npu.transforms.tile.parallel.indices import MADE


def _is_candidate(copy: tile.CopyOp, accumulators: set[SSAValue]) -> bool:
    """Whether a copy is from one buffer of the compiler's to another one like it, and the first is written once."""
    source, target = copy.source, copy.target
    if not (is_managed(source) and is_managed(target)) or _tile(source) != _tile(target) or {source, target} & accumulators:
        return False
    writers = [op for op in users_of(source) if any(use.writes and root_of(use.value) is source for use in effects_of(op))]
    return len(writers) == 1 and copy.transpose is None and not is_on_a_core(copy)


def _kept(copy: tile.CopyOp) -> Refusal | None:
    """Why a candidate stays a copy; None where it goes: one operation fills the source, only the copy reads it, and its
    destination is new there."""
    source, target, block = copy.source, copy.target, copy.parent_block()
    assert block is not None
    given, taken, allocated = _label(source), _label(target), _place(target)
    others = [use.operation for use in source.uses if use.operation is not copy]
    if len(others) != 1 or len(list(source.uses)) != 2:
        readers = [op for op in users_of(source) if op is not copy
                   and any(use.reads and root_of(use.value) is source for use in effects_of(op))]
        if readers:
            return Refusal(f"{given} is read at {lines_of(readers)} too", f"read {taken} there")
        return Refusal(f"parts of {given} are written one by one", f"write to {taken} what goes to {given}")
    (writer,) = others
    if writer.parent_block() is not block or not writer.is_before_in_block(copy) or not overwrites(writer, source):
        return Refusal(f"{line_of(writer)} fills {given} in another loop or branch, or a part of it",
                       f"fill all of {given} beside the copy")
    loads = any(space_of(root_of(use.value)) == "gm" for use in effects_of(writer))
    if loads and isinstance(writer, tile.CopyOp) and _tile(writer.source)[0] != _tile(source)[0]:  # in UB alone
        return Refusal(f"{given} is loaded from {_tile(writer.source)[0]} as {_tile(source)[0]}, which takes a way through UB",
                       f"give {given} the element type of the tensor")
    if loads and (loop := _serial_loop_around(copy)) is not None:
        return Refusal(f"in a serial loop the copy lets the next load of {given} begin while work on {taken} goes on",
                       "T.Pipelined(..., num_stages=2) gives the loop slots for that", Stages(location_of(loop), 2))
    for op in block.ops:
        if op is copy:
            break
        if not isinstance(op, tile.AllocOp) and touches(op, target):
            return Refusal(f"{taken} is in use from {line_of(op)} on", f"use a buffer of its own there in place of {taken}",
                           OwnBuffer(taken, allocated, location_of(op)))
    if any(op.name.startswith("hivm.") for op in block.ops):
        return Refusal("its author synchronises beside the copy", "leave the waits to the compiler")
    beyond = next((user for user in users_of(target) if not _is_below(user, copy)), None)
    if beyond is not None:
        return Refusal(f"{taken} is used at {line_of(beyond)}, outside of the copy's loop or branch",
                       f"use a buffer of its own there in place of {taken}",
                       OwnBuffer(taken, allocated, location_of(beyond)))
    return None


def _label(value: SSAValue) -> str:
    assert isinstance(value.owner, tile.AllocOp)
    return value.owner.label.data


def _place(value: SSAValue) -> Location | None:
    assert isinstance(value.owner, tile.AllocOp)
    return location_of(value.owner)


def _tile(value: SSAValue) -> tuple[Attribute, tuple[int, ...]]:
    kind = value.type
    assert isinstance(kind, MemRefType)
    return kind.element_type, tile.shape_of(value)


def _serial_loop_around(op: Operation) -> Operation | None:
    """The innermost loop around an operation, where its iterations take no slots in turn."""
    parent = op.parent_op()
    while parent is not None and not isinstance(parent, (scf.ForOp, scf.WhileOp)):
        parent = parent.parent_op()
    return None if isinstance(parent, scf.ForOp) and tile.stages_of(parent) > 1 else parent


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
        accumulators = {root_of(inner.c) for inner in op.walk() if isinstance(inner, tile.GemmOp)}
        for copy in [inner for inner in op.walk() if isinstance(inner, tile.CopyOp)] if self.collapse else ():
            if _is_candidate(copy, accumulators):
                kept = _kept(copy)
                if kept is None:
                    record_done(op, self.name, location_of(copy),
                                f"{_label(copy.source)} and {_label(copy.target)} are one buffer")
                    _merge(copy)
                elif _label(copy.source) != MADE:
                    record_refusal(op, self.name, location_of(copy),
                                          f"{sized(copy.source)} is copied to {_label(copy.target)}: "
                                   f"{kept.why}", kept.edit, change=kept.change)


def _merge(copy: tile.CopyOp) -> None:
    """Let the source of a copy be its destination."""
    source, target, home = copy.source.owner, copy.target.owner, copy.parent_block()
    assert isinstance(source, tile.AllocOp) and isinstance(target, tile.AllocOp) and home is not None
    Rewriter.erase_op(copy)
    source.result.replace_all_uses_with(target.result)
    if target.parent_block() is home:  # the first use is further up now
        home.detach_op(target)
        Rewriter().insert_op(target, InsertPoint.at_start(home))
    Rewriter.erase_op(source)


__all__ = ["CollapseCopies"]
