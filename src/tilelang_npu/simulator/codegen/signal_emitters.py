"""Emitters of the custom ops that send signals to other cards of a pod, or wait for other cards."""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr

from tilelang_npu.card_signals import BarrierWait, SignalWait, complete_puts, send_signal
from tilelang_npu.dialects import hivm
from tilelang_npu.dialects.text import location_of
from tilelang_npu.simulator.codegen.handlers import custom
from tilelang_npu.simulator.codegen.python_emitter import PythonEmitter
from tilelang_npu.simulator.codegen.strided_views import alternatives
from tilelang_npu.simulator.machine.op_records import PeerSignal, PeerWait, PutsEnd


def _how(op: hivm.CustomOp) -> int:
    """Returns what the op's attribute ``how`` states: the operation of a signal, or the comparison of a wait."""
    how = op.attributes.get("how")
    return int(how.value.data) if isinstance(how, IntegerAttr) else 0


@custom("shmem_signal_op")
def _signal(em: PythonEmitter, op: hivm.CustomOp) -> None:
    word, number, rank = op.ins()
    card = em.integer(rank)
    em.record_op(op, lambda slot: PeerSignal(slot(card)), without="src")
    em.emit_print(f"{em.constant(send_signal, 'signal')}({em.array(em.buffer(word))}, {em.text_of(em.integer(number))}, "
                  f"{bool(_how(op))}, {em.text_of(card)}, {em.constant(location_of(op), 'line')}, {em.core_text()})")


@custom("shmem_signal_wait_until")
def _wait(em: PythonEmitter, op: hivm.CustomOp) -> None:
    word, number = op.ins()
    record = em.record_op(op, lambda slot: PeerWait(), without="src")
    buffer = em.buffer(word)
    name = alternatives(buffer)[0].base.label or "a signal"
    em.switches = em.global_sync = True
    em.emit_card_wait(record, f"{em.constant(SignalWait, 'SignalWait')}({em.array(buffer)}, {_how(op)}, "
                      f"{em.text_of(em.integer(number))}, {name!r}, {em.constant(location_of(op), 'line')}, {em.core_text()})",
                      op)


@custom("shmem_quiet")
def _quiet(em: PythonEmitter, op: hivm.CustomOp) -> None:
    em.record_op(op, lambda slot: PutsEnd())
    em.emit_print(f"{em.constant(complete_puts, 'quiet')}({em.core_text()})")


@custom("shmem_barrier")
def _barrier(em: PythonEmitter, op: hivm.CustomOp) -> None:
    record = em.record_op(op, lambda slot: PeerWait())
    em.switches = em.global_sync = True
    em.emit_card_wait(record, f"{em.constant(BarrierWait, 'BarrierWait')}({em.text_of(em.integer(op.ins()[0]))}, "
                      f"bid == 0 and sid == 0, {em.constant(location_of(op), 'line')}, {em.core_text()})", op)
