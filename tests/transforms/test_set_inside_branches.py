"""An event is set in a branch after the work that its wait needs, and in the other arm: one set for each wait, and no
hazard."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from xdsl.dialects import scf

from removal import Call, removed
from tilelang_npu.dialects import hivm
from tilelang_npu.dialects.text import make_context, parse_module
from tilelang_npu.simulator.result.launch_result import Launch
from tilelang_npu.simulator.run.program import Program
from tilelang_npu.transforms.hivm.complete_kernel import CompleteKernel
from tilelang_npu.transforms.hivm.insert_sync import InsertSync

SIZE, TRIPS = 4096, 5
UB = f"memref<{SIZE}xf32, #hivm.address_space<ub>>"
GM = f"memref<{SIZE}xf32, #hivm.address_space<gm>>"
FLAGS = f"memref<{TRIPS}xi1, #hivm.address_space<gm>>"


def kernel(then: Sequence[str], otherwise: Sequence[str] = (), following: Sequence[str] = ("exp u x", "store x"), *,
           rounds: int = 0) -> str:
    """A loop with a branch, a load into ``u`` after it, and further operations, given as ``exp FROM TO``, ``store FROM``. With
    ``rounds``, it is inside another loop."""
    def spelled(words: str) -> str:
        kind, source, *target = words.split()
        if kind == "store":
            return f"hivm.hir.store ins(%{source} : {UB}) outs(%O : {GM})"
        return f"hivm.hir.v{kind} ins(%{source} : {UB}) outs(%{target[0]} : {UB})"

    casts = "\n".join(f"%p{i} = arith.constant {4 * SIZE * i} : i64\n%{name} = hivm.hir.pointer_cast(%p{i}) : {UB}"
                      for i, name in enumerate("uvwxy"))
    arms = " else ".join("{\n" + "\n".join(map(spelled, arm)) + "\n}" for arm in (then, otherwise) if arm)
    return f"""func.func @k(%X: {GM}, %O: {GM}, %D: {FLAGS}) attributes {{hacc.entry,
      hacc.function_kind = #hacc.function_kind<DEVICE>, hivm.func_core_type = #hivm.func_core_type<AIV>}} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.constant {TRIPS} : index
  {casts}
  {chr(10).join(f"hivm.hir.load ins(%X : {GM}) outs(%{name} : {UB})" for name in "uvwxy")}
  {f"%rounds = arith.constant {rounds} : index" if rounds else ""}
  {"scf.for %t = %c0 to %rounds step %c1 {" if rounds else ""}
  scf.for %i = %c0 to %n step %c1 {{
    %d = memref.load %D[%i] : {FLAGS}
    scf.if %d {arms}
    hivm.hir.load ins(%X : {GM}) outs(%u : {UB})
    {chr(10).join(map(spelled, following))}
  }}
  {"}" if rounds else ""}
  hivm.hir.store ins(%w : {UB}) outs(%O : {GM})
  return
}}"""


EARLY = {
    "then": (["exp u v", "exp v w", "exp w y"], []),
    "both arms": (["exp u v", "exp v w"], ["store x"]),
}
LATE = {
    "read last": (["exp v w", "exp u v"], []),
    "read in both arms": (["exp u v", "exp v w"], ["exp u w", "exp w y"]),
}


def _compiled(text: str) -> str:
    module = parse_module(text)
    for step in (InsertSync(), CompleteKernel()):
        step.apply(make_context(), module)
    module.verify()
    return str(module)


def _sets(text: str) -> tuple[int, int]:
    """Returns the number of sets of V for MTE2 in the arms of a branch, and elsewhere."""
    found = [op for op in parse_module(text).walk() if isinstance(op, hivm.SetFlagOp) and op.pipes() == ("V", "MTE2")]
    within = sum(isinstance(op.parent_op(), scf.IfOp) for op in found)
    return within, len(found) - within


def _calls() -> list[Call]:
    x = np.linspace(-2, 0, SIZE, dtype=np.float32)
    return [Call((x, np.zeros(SIZE, np.float32), np.array([number >> trip & 1 for trip in range(TRIPS)], bool)), 1)
            for number in range(1 << TRIPS)]


@pytest.mark.parametrize(("then", "otherwise"), EARLY.values(), ids=EARLY)
def test_an_event_is_set_once_in_each_arm(then: list[str], otherwise: list[str]) -> None:
    text = _compiled(kernel(then, otherwise))
    assert _sets(text) == (2, 0)
    for call in _calls():
        assert Launch(Program(parse_module(text)).trace(call.arguments, blocks=1)).hazards == []
    assert removed(text, _calls()).idle == []


@pytest.mark.parametrize(("then", "otherwise"), LATE.values(), ids=LATE)
def test_the_last_access_in_a_branch_is_waited_for_after_it(then: list[str], otherwise: list[str]) -> None:
    text = _compiled(kernel(then, otherwise))
    assert _sets(text)[1]
    for call in _calls():
        assert Launch(Program(parse_module(text)).trace(call.arguments, blocks=1)).hazards == []


@pytest.mark.parametrize(("then", "otherwise"), [*EARLY.values(), *LATE.values()], ids=[*EARLY, *LATE])
@pytest.mark.parametrize("rounds", [1, 3])
def test_a_loop_that_runs_again_has_no_hazard(then: list[str], otherwise: list[str], rounds: int) -> None:
    """A loop that runs several times and keeps its events between its runs: other waits use other events."""
    text = _compiled(kernel(then, otherwise, rounds=rounds))
    for call in _calls():
        assert Launch(Program(parse_module(text)).trace(call.arguments, blocks=1)).hazards == []


def test_the_load_begins_while_the_branch_goes_on() -> None:
    """With an early set the load begins early: the same branch takes longer if the buffer is read last."""
    times = []
    for then in (["exp u v", "exp v w", "exp w y"], ["exp v w", "exp w y", "exp u v"]):
        call = _calls()[-1]
        times.append(Launch(Program(parse_module(_compiled(kernel(then)))).trace(call.arguments, blocks=1)).time_us)
    assert times[0] < times[1]
