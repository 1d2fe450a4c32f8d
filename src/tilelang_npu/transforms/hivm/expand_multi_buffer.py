"""Expands each multi-buffer with N slots into N buffers and a selection by the iteration number modulo N.

``hivm.hir.pointer_cast(%a, %b)`` inside a loop becomes one cast per slot before the outermost operation around it, and a chain
of ``arith.select`` in its place. Runs after synchronisation, which treats the slots as one buffer.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from xdsl.context import Context
from xdsl.dialects import arith, func, scf
from xdsl.dialects.builtin import MemRefType, ModuleOp, i64
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from tilelang_npu.analysis.locations import copy_location, refuse
from tilelang_npu.dialects import hivm
from tilelang_npu.dialects.ir.remarks import Placed, remark_of, set_remark
from tilelang_npu.transforms.infra.iteration_numbers import emit_iteration_modulo
from tilelang_npu.transforms.infra.op_builder import OpBuilder


def _expand_slots(emit: OpBuilder, cast: hivm.PointerCastOp) -> None:
    addresses, loop = list(cast.addrs), cast.parent_op()
    while isinstance(loop, scf.IfOp):
        loop = loop.parent_op()
    if not isinstance(loop, scf.ForOp):
        raise refuse(cast, f"a buffer has {len(addresses)} slots but is not in a loop", "T295")
    kind = cast.results[0].type
    assert isinstance(kind, MemRefType)
    turn = emit_iteration_modulo(emit, loop, len(addresses))
    name, remark = cast.results[0].name_hint, remark_of(cast)
    slots: list[SSAValue] = []
    entry = emit.entry
    outermost = next(op for op in entry.ops if any(inner is cast for inner in op.walk()))
    with emit.before(outermost):
        for position, address in enumerate(addresses):
            slot = emit.insert(hivm.PointerCastOp([address], kind))
            copy_location(cast, slot)
            if remark is not None and isinstance(remark.facts, Placed):
                set_remark(slot, replace(remark, facts=replace(remark.facts, slot=position)))
            slot.results[0].name_hint = f"{name}_{position}" if name else None
            slots.append(slot.results[0])
    with emit.before(cast):
        chosen = slots[-1]
        for position in reversed(range(len(slots) - 1)):
            here = emit.insert(arith.CmpiOp(turn.results[0], emit.constant(position, i64), "eq")).result
            chosen = emit.insert(arith.SelectOp(here, slots[position], chosen)).result
        chosen.name_hint = name
    Rewriter().replace_op(cast, [], [chosen])


@dataclass(frozen=True)
class ExpandMultiBuffer(ModulePass):
    """Rewrites each ``pointer_cast`` with N addresses into N casts and a selection by the loop iteration modulo N."""

    name = "expand-multi-buffer"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in op.walk():
            if isinstance(function, func.FuncOp) and function.body.blocks:
                emit = OpBuilder(function.body.block)
                for cast in [inner for inner in function.walk() if isinstance(inner, hivm.PointerCastOp)]:
                    if len(cast.addrs) > 1:
                        _expand_slots(emit, cast)
