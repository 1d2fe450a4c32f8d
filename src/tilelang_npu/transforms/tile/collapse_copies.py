"""Replaces the source buffer of a copy by the destination buffer and removes the copy, if the source has no other reader.

``T.copy(X[..], a); T.copy(a, b)`` loads a tile to ``a`` only in order to copy it to ``b``. With one buffer instead of two, the
tile is loaded to ``b`` directly: to L1 without a detour through UB, or to UB without a copy within UB.

The pass runs before memories are inferred.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.dialects.builtin import MemRefType, ModuleOp
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern
from xdsl.rewriter import InsertPoint

from tilelang_npu.analysis.accesses import has_reference_to, is_full_overwrite
from tilelang_npu.analysis.buffer_sizes import sized
from tilelang_npu.analysis.buffers import PARALLEL_LABEL, is_managed, root_of, space_of, users_of
from tilelang_npu.analysis.locations import line_of, lines_of
from tilelang_npu.analysis.nesting import is_in_core_scope
from tilelang_npu.dialects import tile
from tilelang_npu.dialects.ir.changes import OwnBuffer, Stages
from tilelang_npu.dialects.ir.effects import effects_of
from tilelang_npu.dialects.ir.remarks import record_done, record_refusal
from tilelang_npu.dialects.text import location_of
from tilelang_npu.transforms.infra.optimisations import Refusal
from tilelang_npu.transforms.infra.patterns import apply_patterns


@dataclass
class MergeCopiedBuffers(RewritePattern):
    """Replaces the source of a copy by its destination, and erases the copy.

    ::

        tile.copy %X to %a; tile.copy %a to %b
        -> tile.copy %X to %b

    The rewrite is sound because it requires that one operation of the same block writes all of the source, that only the copy
    reads the source, and that all accesses to the destination are in this block, after the copy. Both buffers must be managed
    by the compiler (see ``is_managed``), and neither may be an accumulator, because an accumulator is in L0C.
    :func:`_reason_to_keep` lists when a copy is kept.

    Attributes:
        module: the module, to which remarks are added.
        accumulators: the buffers that gemms write.
    """

    module: ModuleOp
    accumulators: set[SSAValue]

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: tile.CopyOp, rewriter: PatternRewriter) -> None:
        if not self._copies_whole_buffer(op):
            return
        source, target = _allocation(op.source), _allocation(op.target)
        name = CollapseCopies.name
        refusal = _reason_to_keep(op)
        if refusal is not None:
            if source.label.data != PARALLEL_LABEL:
                record_refusal(self.module, name, location_of(op),
                               f"{sized(op.source)} is copied to {target.label.data}: {refusal.why}", refusal.edit,
                               change=refusal.change)
            return
        record_done(self.module, name, location_of(op), f"the copy is removed: {source.label.data} and "
                    f"{target.label.data} are one buffer")
        home = op.parent_block()
        assert home is not None
        rewriter.erase(op)
        rewriter.replace_all_uses_with(source.result, target.result)
        if target.parent_block() is home:
            # The first access of the destination is now the write of the source, which may be above the allocation.
            home.detach_op(target)
            rewriter.insert(target, InsertPoint.at_start(home))
        rewriter.erase(source)

    def _copies_whole_buffer(self, copy: tile.CopyOp) -> bool:
        """Whether a copy is from one managed buffer, which one operation writes, to all of another one with the same type."""
        source, target = copy.source, copy.target
        if not (is_managed(source) and is_managed(target)) or {source, target} & self.accumulators:
            return False
        if _element_type_and_shape(source) != _element_type_and_shape(target):
            return False
        writers = [op for op in users_of(source)
                   if any(effect.writes and root_of(effect.value) is source for effect in effects_of(op))]
        return len(writers) == 1 and copy.transpose is None and not is_in_core_scope(copy)


def _reason_to_keep(copy: tile.CopyOp) -> Refusal | None:
    """Returns why the two buffers of a copy cannot be one; None if they can."""
    block = copy.parent_block()
    assert block is not None
    return _source_is_needed(copy, block) or _target_is_in_use(copy, block)


def _source_is_needed(copy: tile.CopyOp, block: Block) -> Refusal | None:
    """Returns why the source of a copy has to be a buffer of its own."""
    source = copy.source
    name, target_name = _allocation(source).label.data, _allocation(copy.target).label.data
    other_users = [use.operation for use in source.uses if use.operation is not copy]
    if len(other_users) != 1 or len(list(source.uses)) != 2:
        readers = [op for op in users_of(source) if op is not copy
                   and any(effect.reads and root_of(effect.value) is source for effect in effects_of(op))]
        if readers:
            return Refusal(f"{name} is read at {lines_of(readers)} too", f"read {target_name} in place of {name} there")
        return Refusal(f"parts of {name} are written by separate statements, and {name} is then copied as a whole",
                           f"write to {target_name} instead of {name}")
    (writer,) = other_users
    if writer.parent_block() is not block or not writer.is_before_in_block(copy) or not is_full_overwrite(writer, source):
        return Refusal(f"{line_of(writer)} fills {name} in another loop or branch, or only a part of it",
                       f"fill all of {name} in the loop or branch of the copy")
    if not any(space_of(root_of(effect.value)) == "gm" for effect in effects_of(writer)):
        return None
    element, _ = _element_type_and_shape(source)
    if isinstance(writer, tile.CopyOp) and (loaded := _element_type_and_shape(writer.source)[0]) != element:
        # Only a load to UB converts, so the destination could no longer be in L1.
        return Refusal(f"{name} is loaded from {loaded} as {element}, and only a load to UB can convert elements",
                       f"give {name} the element type of the tensor")
    if (loop := _serial_loop_around(copy)) is not None:
        # The next load of the source can run during the work on the destination, as with two slots of a multi-buffer.
        return Refusal(f"the copy of {name} to {target_name} is kept: with it, the next iteration of the serial loop can load "
                       f"{name} while this one works on {target_name}",
                       "make the loop T.Pipelined(..., num_stages=2), where multi-buffer slots let the next load run early",
                       Stages(location_of(loop), 2))
    return None


def _target_is_in_use(copy: tile.CopyOp, block: Block) -> Refusal | None:
    """Returns which access of the destination is before the copy or outside of its block."""
    target = copy.target
    allocation = _allocation(target)
    name = allocation.label.data

    def use_another_buffer(why: str, place: Operation) -> Refusal:
        return Refusal(why, f"use another buffer there in place of {name}",
                       OwnBuffer(name, location_of(allocation), location_of(place)))

    for op in block.ops:
        if op is copy:
            break
        if not isinstance(op, tile.AllocOp) and has_reference_to(op, target):
            return use_another_buffer(f"{name} is accessed before the copy, at {line_of(op)}", op)
    if any(op.name.startswith("hivm.") for op in block.ops):
        return Refusal("the author synchronises in the block of the copy", "leave the waits to the compiler")
    outside = next((user for user in users_of(target) if block.find_ancestor_op_in_block(user) is None), None)
    if outside is not None:
        return use_another_buffer(f"{name} is used at {line_of(outside)}, outside of the copy's loop or branch", outside)
    return None


def _allocation(buffer: SSAValue) -> tile.AllocOp:
    """Returns the allocation of a managed buffer."""
    assert isinstance(buffer.owner, tile.AllocOp)
    return buffer.owner


def _element_type_and_shape(buffer: SSAValue) -> tuple[Attribute, tuple[int, ...]]:
    kind = buffer.type
    assert isinstance(kind, MemRefType)
    return kind.element_type, tile.shape_of(buffer)


def _serial_loop_around(op: Operation) -> Operation | None:
    """Returns the innermost loop around an operation, unless it is a pipelined loop, which has multi-buffer slots."""
    parent = op.parent_op()
    while parent is not None and not isinstance(parent, (scf.ForOp, scf.WhileOp)):
        parent = parent.parent_op()
    return None if isinstance(parent, scf.ForOp) and tile.stages_of(parent) > 1 else parent


@dataclass(frozen=True)
class CollapseCopies(ModulePass):
    """Replaces the source buffer of a copy by the destination buffer and removes the copy, if the source has no other reader.

    Attributes:
        enabled: whether the pass does anything.
    """

    name = "collapse-copies"
    enabled: bool = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if self.enabled:
            accumulators = {root_of(gemm.c) for gemm in op.walk() if isinstance(gemm, tile.GemmOp)}
            apply_patterns(op, MergeCopiedBuffers(op, accumulators), classes=tile.CopyOp)


__all__ = ["CollapseCopies", "MergeCopiedBuffers"]
