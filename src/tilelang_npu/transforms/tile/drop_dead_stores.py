"""Erases operations whose result is overwritten before it is read, such as ``T.clear`` before a load to the same buffer.

The pass runs before memories are inferred.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern

from tilelang_npu.analysis.accesses import has_reference_to, is_full_overwrite
from tilelang_npu.analysis.buffers import is_managed, root_of, space_of
from tilelang_npu.analysis.locations import line_of
from tilelang_npu.analysis.nesting import is_in_core_scope
from tilelang_npu.analysis.ranges import Ranges, is_surely_inside
from tilelang_npu.dialects import tile
from tilelang_npu.dialects.ir.effects import EffectsOp, effects_of
from tilelang_npu.dialects.ir.remarks import record_done
from tilelang_npu.dialects.text import location_of
from tilelang_npu.target import GM
from tilelang_npu.transforms.infra.patterns import apply_patterns


@dataclass
class EraseOverwrittenStore(RewritePattern):
    """Erases an operation whose result another operation overwrites before the result is read.

    ::

        tile.fill %zero into %x; tile.copy %X to %x
        -> tile.copy %X to %x

    The next operation in the block that accesses the buffer must write all of the buffer and read none of it. An operation is
    kept if it writes

    * a buffer that the compiler does not manage (see ``is_managed``);
    * an accumulator that a gemm overwrites, because ``fold-accumulator-clear`` rewrites such clears;
    * a buffer that is not accessed afterwards, because the author may want to measure just this load.

    It is also kept in a ``T.Scope``, if the author synchronises between the two operations, and if one of its regions may be
    outside of its buffer at run time, which is an error of the kernel that must be reported.

    Attributes:
        module: the module, to which remarks are added.
    """

    module: ModuleOp

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> None:
        buffer = _only_written_buffer(op)
        if buffer is None or is_in_core_scope(op):
            return
        overwriting = _overwriting_operation(op, buffer)
        if overwriting is None or not _is_inside_of_buffers(op, Ranges()):
            return
        assert isinstance(buffer.owner, tile.AllocOp)
        record_done(self.module, DropDeadStores.name, location_of(op),
                    f"this write to {buffer.owner.label.data} is removed, because {line_of(overwriting)} overwrites the "
                    "elements before anything reads them")
        rewriter.erase(op)


def _only_written_buffer(op: Operation) -> SSAValue | None:
    """Returns the buffer that an operation writes, if it writes one managed buffer and nothing else.

    None also for an accumulator, and for an operation with other side effects.
    """
    if not isinstance(op, EffectsOp) or op.has_side_effects():
        return None
    written = [root_of(effect.value) for effect in op.effects() if effect.writes and effect.role != "accumulator"]
    return written[0] if len(written) == 1 and is_managed(written[0]) else None


def _is_inside_of_buffers(op: Operation, ranges: Ranges) -> bool:
    """Whether all accesses of an operation surely are inside of their buffers; copies are clipped at the end of a tensor."""
    return all(is_surely_inside(effect.value, ranges, clipped=space_of(root_of(effect.value)) == GM)
               for effect in effects_of(op))


def _overwriting_operation(op: Operation, buffer: SSAValue) -> Operation | None:
    """Returns the next operation in the block that accesses a buffer, if it overwrites all of the buffer and reads none of it.

    None also where the author synchronises before that operation.
    """
    following = op.next_op
    while following is not None and not following.name.startswith("hivm."):
        if has_reference_to(following, buffer) and not isinstance(following, (tile.RegionOp, tile.ViewOp)):
            return following if is_full_overwrite(following, buffer) and not isinstance(following, tile.GemmOp) else None
        following = following.next_op
    return None


@dataclass(frozen=True)
class DropDeadStores(ModulePass):
    """Erases operations whose result is overwritten before it is read, such as ``T.clear`` before a load to the same buffer.

    Attributes:
        enabled: whether the pass does anything.
    """

    name = "drop-dead-stores"
    enabled: bool = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if self.enabled:
            # Backward, so that of several writes in a row only the last one stays.
            apply_patterns(op, EraseOverwrittenStore(op), classes=EffectsOp, backward=True)


__all__ = ["DropDeadStores", "EraseOverwrittenStore"]
