"""Erases uses of the author's scratch memory (``tmp=``) whose contents nothing reads.

An operation with ``tmp`` leaves the contents of that buffer undefined, which the trace states by ``tile.scratch``. The compiler
allocates the scratch memory that operations need by itself, so a buffer that is scratch memory and nothing else needs no bytes.
Uses of a buffer that the kernel also reads stay: the synchronisation and the sanitizer must know that its contents change. A
buffer with an address stays too, because its bytes may be those of another buffer.

The pass runs first, so that all later passes see only the uses that matter.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import memref
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern

from tilelang_npu.analysis.buffers import root_of
from tilelang_npu.dialects import tile
from tilelang_npu.dialects.ir.effects import effects_of
from tilelang_npu.dialects.ir.remarks import record_done
from tilelang_npu.dialects.text import location_of
from tilelang_npu.transforms.infra.patterns import apply_patterns


@dataclass
class EraseUnreadScratch(RewritePattern):
    """Erases the use of a buffer as scratch memory if no operation of the function reads the buffer.

    ::

        tile.reduce "reduce_sum" ins(%x) outs(%y) dims = [1]; tile.scratch %tmp
        -> tile.reduce "reduce_sum" ins(%x) outs(%y) dims = [1]

    Attributes:
        module: the module, to which remarks are added.
    """

    module: ModuleOp

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: tile.ScratchOp, rewriter: PatternRewriter) -> None:
        buffer = root_of(op.temp_buffer)
        if not isinstance(buffer.owner, tile.AllocOp) or buffer.owner.address is not None or _is_read(buffer):
            return
        record_done(self.module, DropUnreadScratch.name, location_of(op),
                    f"the scratch memory {buffer.owner.label.data} takes no bytes: nothing reads it, and the compiler "
                    "allocates the scratch memory that the operation needs")
        rewriter.erase(op)


def _is_read(buffer: SSAValue) -> bool:
    """Whether an operation reads a buffer, or uses it in a way that has no declared effect."""
    pending: list[SSAValue] = [buffer]
    while pending:
        for use in pending.pop().uses:
            user: Operation = use.operation
            if isinstance(user, (tile.RegionOp, tile.ViewOp)):
                pending.append(user.results[0])
            elif isinstance(user, memref.DimOp):
                continue
            elif not any(effect.index == use.index and not effect.reads for effect in effects_of(user)):
                return True
    return False


@dataclass(frozen=True)
class DropUnreadScratch(ModulePass):
    """Erases uses of the author's scratch memory whose contents nothing reads."""

    name = "drop-unread-scratch"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        apply_patterns(op, EraseUnreadScratch(op), classes=tile.ScratchOp)


__all__ = ["DropUnreadScratch", "EraseUnreadScratch"]
