"""Adds the two events to each ``mmadL1`` that keep its loads from overwriting halves of L0A and L0B that are still in use.

The macro operation ``mmadL1`` loads one half of L0A and L0B while it multiplies the other half. Each of two events from pipe M
to pipe MTE1 signals that one half is free. The events are set before the first macro of a function, waited for and set again by
each macro, and waited for after the last macro (docs/hivm.md#mmadl1). The macro also takes the iteration number, whose parity
selects the half.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import func, scf
from xdsl.dialects.builtin import ModuleOp, i64
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from tilelang_npu.dialects import hivm
from tilelang_npu.dialects.ir.remarks import Remark, Waits, set_remark
from tilelang_npu.transforms.hivm.sync.event_ids import event_uses, free_event_ids
from tilelang_npu.transforms.infra.iteration_numbers import emit_iteration
from tilelang_npu.transforms.infra.op_builder import OpBuilder

NAME = "guard-l0"


def _has_unguarded_macros(op: Operation) -> bool:
    """Whether an operation contains a macro whose halves no event guards yet."""
    return any(_is_unguarded(inner) for inner in op.walk())


def _is_unguarded(op: Operation) -> bool:
    return isinstance(op, hivm.MmadL1Op) and not any(event in op.HALVES for event, _ in op.shared_events())


def _guard_macros(function: func.FuncOp) -> None:
    entry = function.body.block
    emit = OpBuilder(entry)
    holders = [op for op in entry.ops if _has_unguarded_macros(op)]
    macros = [op for op in function.walk() if isinstance(op, hivm.MmadL1Op) and _is_unguarded(op)]
    halves = free_event_ids(event_uses(function), "M", "MTE1")[:2]
    for number in halves:
        with emit.before(holders[0]):
            set_remark(emit.insert(hivm.SetFlagOp("M", "MTE1", number)), _half_remark(number, after_loop=False))
    for number in reversed(halves):
        with emit.after(holders[-1]):
            set_remark(emit.insert(hivm.WaitFlagOp("M", "MTE1", number)),
                       _half_remark(number, after_loop=isinstance(holders[-1], (scf.ForOp, scf.WhileOp))))
    for macro in macros:
        _set_arguments(emit, macro, halves)


def _half_remark(number: int, *, after_loop: bool) -> Remark:
    return Remark(NAME, text="MTE1 waits until M no longer reads one half of L0A and L0B, which MTE1 then overwrites",
                  facts=Waits(source="M", target="MTE1", numbers=(number,), after_loop=after_loop))


def _set_arguments(emit: OpBuilder, macro: hivm.MmadL1Op, numbers: Sequence[int]) -> None:
    loop = macro.parent_op()
    with emit.before(macro):
        unused = emit.constant(hivm.NO_EVENT, i64)
        counter = emit.as_i64(emit_iteration(emit, loop)) if isinstance(loop, scf.ForOp) else unused
        halves = {event.place: emit.constant(number, i64) for event, number in zip(macro.HALVES, numbers, strict=True)}
        macro.set_sync_arguments({macro.COUNTER: counter, **halves}, unused)


@dataclass(frozen=True)
class GuardL0(ModulePass):
    """Adds to each ``mmadL1`` the iteration number and two events that signal which half of L0A and L0B is free."""

    name = NAME

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in op.walk():
            if isinstance(function, func.FuncOp) and function.body.blocks and _has_unguarded_macros(function):
                _guard_macros(function)
