"""Where a kernel stops in a debugger: custom ops, of which none takes time or is anything to the sanitizer."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects.builtin import IndexType, IntegerType

from tilelang_npu.dialects import hivm
from tilelang_npu.dialects.text import location_of
from tilelang_npu.dialects.tile.calls import facts_of
from tilelang_npu.simulator.codegen.handlers import custom
from tilelang_npu.simulator.codegen.prints import in_rows
from tilelang_npu.simulator.codegen.python_emitter import PythonEmitter
from tilelang_npu.simulator.machine.memory import Array
from tilelang_npu.simulator.machine.stops import looker, stop_of, stopper


@custom("look")
def _look(em: PythonEmitter, op: hivm.CustomOp) -> None:
    facts = facts_of(op.attributes)
    buffer = em.buffer(op.ins()[0])
    held = facts["held"]
    assert isinstance(held, list)
    look = em.constant(looker(str(facts["called"]), _as_held(held)), "look")
    em.shown(f"{look}(bid, {em.core!r}, sid, {em.array(buffer)})")


def _as_held(held: Sequence[int]) -> Callable[[Array], Array]:
    return lambda value: in_rows(value, held)


@custom("breakpoint")
def _breakpoint(em: PythonEmitter, op: hivm.CustomOp) -> None:
    stop = stop_of(facts_of(op.attributes), location_of(op))
    texts = [em.spelled(em.integer(ssa)) if isinstance(ssa.type, (IndexType, IntegerType)) else em.expression(ssa).text
             for ssa in op.ins()]
    pass_by = em.constant(stopper(stop), "stop")
    em.stops.append(stop)
    if stop.together and em.core == "AIV":
        em.meet(op)
    em.shown(f"{pass_by}({', '.join(['bid', repr(em.core), 'sid', *texts])})")
    if stop.together and em.core == "AIC":
        em.meet(op)
