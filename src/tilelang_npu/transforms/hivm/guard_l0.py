"""Give ``mmadL1`` the two events that keep its loads of L0A and L0B off the halves that are still being multiplied.

The macro loads one half while it multiplies the other. Two events of M -> MTE1 say that a half is free: they are
set in front of the first macro of a function, passed on by each, and waited for behind the last (docs/hivm.md#mmadl1). The
macro also takes the iteration it is in, for the parity of the halves.
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
from tilelang_npu.transforms.hivm.insert_sync import iteration
from tilelang_npu.transforms.hivm.sync.event_ids import free_numbers
from tilelang_npu.transforms.hivm.sync.own_flags import flags_by_name
from tilelang_npu.transforms.ir.emit import OpBuilder

NAME = "guard-l0"


def _holds(op: Operation) -> bool:
    """Whether there are macros whose halves nothing guards yet."""
    return any(_is_bare(inner) for inner in op.walk())


def _is_bare(op: Operation) -> bool:
    return isinstance(op, hivm.MmadL1Op) and not any(event in op.HALVES for event, _ in op.shared_events())


def _guard(function: func.FuncOp) -> None:
    entry = function.body.block
    emit = OpBuilder(entry)
    holders = [op for op in entry.ops if _holds(op)]
    macros = [op for op in function.walk() if isinstance(op, hivm.MmadL1Op) and _is_bare(op)]
    halves = free_numbers(flags_by_name(function), "M", "MTE1")[:2]
    for number in halves:
        with emit.before(holders[0]):
            set_remark(emit.insert(hivm.SetFlagOp("M", "MTE1", number)), _half(number))
    for number in reversed(halves):
        with emit.after(holders[-1]):
            set_remark(emit.insert(hivm.WaitFlagOp("M", "MTE1", number)), _half(number))
    for macro in macros:
        _pass_on(emit, macro, halves)


def _half(number: int) -> Remark:
    return Remark(NAME, text="its half of L0A and L0B is free again", facts=Waits(source="M", target="MTE1", numbers=(number,)))


def _pass_on(emit: OpBuilder, macro: hivm.MmadL1Op, numbers: Sequence[int]) -> None:
    loop = macro.parent_op()
    with emit.before(macro):
        unused = emit.constant(hivm.NO_EVENT, i64)
        counter = emit.as_i64(iteration(emit, loop)) if isinstance(loop, scf.ForOp) else unused
        halves = {event.place: emit.constant(number, i64) for event, number in zip(macro.HALVES, numbers, strict=True)}
        macro.set_sync_arguments({macro.COUNTER: counter, **halves}, unused)


@dataclass(frozen=True)
class GuardL0(ModulePass):
    """The pass; see the module's text."""

    name = NAME

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in op.walk():
            if isinstance(function, func.FuncOp) and function.body.blocks and _holds(function):
                _guard(function)
