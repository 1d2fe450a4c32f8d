"""Emitters of the ops that synchronise: events, barriers and flags between cores.

Inside a core, values are computed in program order, so events and barriers are only recorded. Between cores a flag is a
counter: a wait for a flag that is not set yields to the other cores of the launch.
"""

from __future__ import annotations

from typing import Literal

from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Operation, SSAValue

from tilelang_npu.card_signals import finish_puts
from tilelang_npu.dialects import hivm
from tilelang_npu.dialects.text import location_of
from tilelang_npu.errors import TileError
from tilelang_npu.linear import Interval
from tilelang_npu.simulator.codegen.code_scopes import Int
from tilelang_npu.simulator.codegen.handlers import effect, unsupported
from tilelang_npu.simulator.codegen.operand_checks import check_pipe
from tilelang_npu.simulator.codegen.python_emitter import PythonEmitter
from tilelang_npu.simulator.machine.core_coroutines import BARRIER_FLAG
from tilelang_npu.simulator.machine.op_records import Barrier, CrossSet, CrossWait, EventSet, EventWait
from tilelang_npu.target import Sync
from tilelang_npu.target.chip_data import Pipe

GROUP_OF_MODE = {"INTER_BLOCK_SYNCHRONIZATION": "kind", "INTER_SUBBLOCK_SYNCHRONIZATION": "sub",
                 "INTRA_BLOCK_SYNCHRONIZATION": "pair"}

_Flag = hivm.SyncBlockSetOp | hivm.SyncBlockWaitOp


def _number(em: PythonEmitter, given: int | SSAValue) -> Int:
    return Int(given) if isinstance(given, int) else em.integer(given)


@effect(hivm.SetFlagOp)
def _set_event(em: PythonEmitter, op: hivm.SetFlagOp) -> None:
    source, target, event = _event(em, op)
    em.record(op, source, (), lambda slot: EventSet(source, target, slot(event)))


@effect(hivm.WaitFlagOp)
def _wait_event(em: PythonEmitter, op: hivm.WaitFlagOp) -> None:
    source, target, event = _event(em, op)
    em.record(op, target, (), lambda slot: EventWait(source, target, slot(event)))


def _event(em: PythonEmitter, op: hivm.SetFlagOp | hivm.WaitFlagOp) -> tuple[Pipe, Pipe, Int]:
    """Returns the pipe that sets an event, the pipe that waits for it, and the event's number, after checks of all three."""
    source, target = (check_pipe(em, op, pipe) for pipe in op.pipes())
    event = _number(em, op.event_id())
    limit = em.chip.sync.event_ids
    if event.known and not 0 <= event.constant < limit:
        raise _no_event(event.constant, limit).at(location_of(op))
    if not event.interval.within(Interval(0, limit - 1)):
        text = em.name_of(event)
        em.line(f"if not 0 <= {text} < {limit}: raise {em.constant(_no_event, 'fault')}({text}, {limit})", op)
    return source, target, event


@effect(hivm.PipeBarrierOp)
def _barrier(em: PythonEmitter, op: hivm.PipeBarrierOp) -> None:
    (pipe,) = op.pipes()
    own: Pipe | Literal["ALL"] = "ALL" if pipe == "ALL" else check_pipe(em, op, pipe)
    em.record(op, "S" if own == "ALL" else own, (), lambda slot: Barrier(own))
    if own in ("ALL", "MTE3") and em.core == "AIV" and em.may_poll and em.reaches_cards:
        em.emit_print(f"{em.constant(finish_puts, 'puts_end')}({em.core_text()})")


@effect(hivm.SyncBlockSetOp)
def _cross_set(em: PythonEmitter, op: hivm.SyncBlockSetOp) -> None:
    _right_core(em, op)
    producer = check_pipe(em, op, op.pipes()[0])
    group = GROUP_OF_MODE[op.tsync_instr_mode.data]
    _set(em, op, producer, _flag(em, op), group)


@effect(hivm.SyncBlockWaitOp)
def _cross_wait(em: PythonEmitter, op: hivm.SyncBlockWaitOp) -> None:
    _right_core(em, op)
    consumer = check_pipe(em, op, op.pipes()[1])
    _wait(em, op, consumer, _flag(em, op))


def _right_core(em: PythonEmitter, op: _Flag) -> None:
    core = op.core()
    if core not in (em.core, "either"):
        raise unsupported(op, f"it is an op of the {core}, but in a function of the {em.core}")


def _flag(em: PythonEmitter, op: _Flag) -> Int:
    flag = _number(em, op.flag_id())
    sync = em.chip.sync
    if flag.known and not 0 <= flag.constant < sync.flag_ids:
        raise _no_flag(flag.constant, sync).at(location_of(op))
    if not flag.interval.within(Interval(0, sync.flag_ids - 1)):
        text = em.name_of(flag)
        em.line(f"if not 0 <= {text} < {sync.flag_ids}: raise {em.constant(_no_flag, 'fault')}({text}, "
                f"{em.constant(sync, 'sync')})", op)
    return flag


def _no_event(event: int, limit: int) -> TileError:
    return TileError(f"event {event} does not exist: a pair of pipes has {limit} events", code="T505",
                     help=f"use an event from 0 to {limit - 1}")


def _no_flag(flag: int, sync: Sync) -> TileError:
    return TileError(f"cross-core flag {flag} does not exist: there are {sync.flag_ids} flags", code="T505",
                     help=f"use one of the flags {list(sync.user_flag_ids)}")


def _set(em: PythonEmitter, op: _Flag | hivm.SyncBlockOp, pipe: Pipe, flag: Int, group: str) -> None:
    em.record(op, pipe, (), lambda slot: CrossSet(pipe, slot(flag), group))
    if group in ("kind", "all"):
        em.global_sync = True
    em.switches = True
    em.emit_flag_set(flag, group, op)


def _wait(em: PythonEmitter, op: _Flag | hivm.SyncBlockOp, pipe: Pipe, flag: Int) -> None:
    record = em.record(op, pipe, (), lambda slot: CrossWait(pipe, slot(flag)))
    em.switches = True
    em.emit_flag_wait(record, flag, op)


@effect(hivm.SyncBlockOp)
def _block_barrier(em: PythonEmitter, op: hivm.SyncBlockOp) -> None:
    mode = op.sync_block_mode.data
    if mode == "BARRIER_CUBE" or mode == "BARRIER_VECTOR":
        if (mode == "BARRIER_CUBE") == (em.core == "AIC"):
            em.record(op, "S", (), lambda slot: Barrier("ALL"))
        return
    group = {"ALL_CUBE": "kind", "ALL_VECTOR": "kind", "ALL_SUB_VECTOR": "sub", "ALL": "all"}[mode]
    takes_part = {"ALL_CUBE": em.core == "AIC", "ALL": True}.get(mode, em.core == "AIV")
    if not takes_part:
        return
    source = op.tcube_pipe if em.core == "AIC" else op.tvector_pipe
    target = op.cube_pipe if em.core == "AIC" else op.vector_pipe
    number = op.flag_id.value.data if isinstance(op.flag_id, IntegerAttr) else 0
    flag = Int(BARRIER_FLAG + number)
    _set(em, op, check_pipe(em, op, source.short) if source is not None else "S", flag, group)
    _wait(em, op, check_pipe(em, op, target.short) if target is not None else "S", flag)


@effect(hivm.CreateSyncBlockLockOp, hivm.SyncBlockLockOp, hivm.SyncBlockUnlockOp, hivm.FreeLockVarOp)
def _lock(em: PythonEmitter, op: Operation) -> None:
    """Emits nothing for a lock: the simulator runs blocks one after the other, which is the order that the lock enforces."""
    if op.results:
        em.values[op.results[0]] = em.value(op.operands[0]) if op.operands else Int(0)
