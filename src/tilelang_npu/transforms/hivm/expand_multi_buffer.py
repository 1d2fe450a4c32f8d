"""Turn an address with N slots into N addresses and a choice by the iteration of the loop around it.

``hivm.hir.pointer_cast(%a, %b)`` inside a loop becomes one cast per slot at the head of the function and a chain of
``arith.select`` at the head of the loop's body. Runs after synchronisation, which wants to see the slots as one buffer.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from xdsl.context import Context
from xdsl.dialects import arith, func, scf
from xdsl.dialects.builtin import MemRefType, ModuleOp, i64
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from tilelang_npu.dialects import hivm
from tilelang_npu.dialects.ir.remarks import Placed, remark_of, set_remark
from tilelang_npu.transforms.hivm.insert_sync import iteration_modulo
from tilelang_npu.transforms.ir.emit import OpBuilder
from tilelang_npu.transforms.ir.locations import refuse, stand_in


def _expand(emit: OpBuilder, cast: hivm.PointerCastOp) -> None:
    addresses, loop = list(cast.addrs), cast.parent_op()
    while isinstance(loop, scf.IfOp):
        loop = loop.parent_op()
    if not isinstance(loop, scf.ForOp):
        raise refuse(cast, f"a buffer with {len(addresses)} slots stands outside of a loop", "T295")
    kind = cast.results[0].type
    assert isinstance(kind, MemRefType)
    turn = iteration_modulo(emit, loop, len(addresses))
    name, said = cast.results[0].name_hint, remark_of(cast)
    slots: list[SSAValue] = []
    entry = emit.entry
    outermost = next(op for op in entry.ops if any(inner is cast for inner in op.walk()))
    with emit.before(outermost):
        for position, address in enumerate(addresses):
            slot = emit.insert(hivm.PointerCastOp([address], kind))
            stand_in(cast, slot)
            if said is not None and isinstance(said.facts, Placed):
                set_remark(slot, replace(said, facts=replace(said.facts, slot=position)))
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
    """The pass; see the module's text."""

    name = "expand-multi-buffer"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in op.walk():
            if isinstance(function, func.FuncOp) and function.body.blocks:
                emit = OpBuilder(function.body.block)
                for cast in [inner for inner in function.walk() if isinstance(inner, hivm.PointerCastOp)]:
                    if len(cast.addrs) > 1:
                        _expand(emit, cast)
