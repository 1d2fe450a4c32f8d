"""Checks the sanitizer with mutants: kernels in which one wait, set, barrier or flag is deleted or moved.

    python benchmarks/mutation.py SCRIPT.py [...] [--mutants 200] [--schedules 50] [--seconds S] [--seed 0]

Each script runs once. The mutants of its kernels are then run with the arguments of their first call; in a mutant one
synchronising op is deleted, or swapped with the op before or after it. A mutant is *reported* if the sanitizer finds a hazard
that the original kernel does not have, or a deadlock. Independently, each mutant is classified by its behaviour. Some classes
are justified by an argument, since the effect of the mutation cannot be simulated:

==========  ============================================================================================================
wrong       its values differ, or it hangs, in program order or under a schedule (early, late, random ones)
on the way  under a schedule, other numbers are stored to global memory temporarily; later stores overwrite them
on chip     under a schedule, an op reads or writes other numbers on chip, without an effect on the results
launch 2    a second launch, which begins with the events and flags that the first one left set, is wrong
piles up    each launch leaves an event or flag set once more; argument: the chip has one bit for an event, and a counter of
            a few bits for a flag
twice       an event is set twice in a row in program order; argument: the chip has one bit for an event
scalar      one of the two accesses is by the scalar unit; argument: in every schedule the scalar unit accesses memory when
            the op is issued, but a chip may take longer
unchanged   the op that runs too early or too late writes the values that the bytes already have; argument: the result does
            not depend on the order
scratch     one of the two accesses is to an op's scratch; argument: schedules do not split an op into its internal steps
inside      a gemm reads the first part of an operand after a wait that is too early, and before its wait for the other
            operand; the hazard disappears if both waits are before the gemm; argument: in schedules a gemm reads all parts
            of an operand at the time of the last
same        every pipe has the same ops in the same order as in the original; argument: the behaviour is the same
right       none of these
==========  ============================================================================================================

All wrong mutants must be reported, and no reported mutant may be *same* or *right*. The static check must find all hazards that
the run finds. It may find more only if it says that they depend on data: it follows both sides of a branch, a run only one.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest import mock
from zlib import crc32

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.traits import IsTerminator

from tilelang_npu.cli.script import execute
from tilelang_npu.dialects import hivm
from tilelang_npu.errors import TileError
from tilelang_npu.simulator import Launch, Program
from tilelang_npu.simulator.machine.op_records import OpRecord, replay
from tilelang_npu.simulator.result.static_check import check
from tilelang_npu.simulator.run.entry_functions import kernel_of
from tilelang_npu.simulator.run.program import Left, RecordedLaunch
from tilelang_npu.simulator.run.reordered_execution import Stores
from tilelang_npu.simulator.sanitizer.hazard import Hazard
from tilelang_npu.simulator.time.pipe_steps import JOIN
from tilelang_npu.target.chip_data import PIPES

SYNC = (hivm.SetFlagOp, hivm.WaitFlagOp, hivm.PipeBarrierOp, hivm.SyncBlockSetOp, hivm.SyncBlockWaitOp, hivm.SyncBlockOp)
KINDS = ("deleted", "moved down", "moved up")
FATES = ("wrong", "on the way", "on chip", "launch 2", "piles up", "twice", "scalar", "unchanged", "scratch", "inside", "same",
         "right")
WRONG = FATES[:4]


@dataclass(frozen=True)
class Call:
    """A kernel and the arguments of a call."""

    program: Program
    arguments: list[Any]
    blocks: int


@dataclass(frozen=True)
class Verdict:
    """The result for a mutant.

    Attributes:
        fate: one of ``FATES``.
        reported: the hazards that the original kernel does not have.
        shown: the schedule under which the mutant is wrong; empty if there is none.
        checked: whether the static check finds the same hazards, or says that the others depend on data.
    """

    fate: str
    reported: list[str]
    shown: str
    checked: bool


def calls_of(script: Path, most_blocks: int) -> list[Call]:
    """Returns the kernels that a script runs, with the arguments of the first call; with fewer blocks if blocks are
    independent."""
    found: list[Call] = []
    run = Program.run

    def observed(self: Program, args: Sequence[Any], **options: Any) -> Any:
        if all(call.program is not self for call in found):
            blocks = options["blocks"]
            found.append(Call(self, copies(args), blocks if self.global_sync else min(blocks, most_blocks)))
        return run(self, args, **options)

    with mock.patch.object(Program, "run", observed), contextlib.redirect_stdout(io.StringIO()):
        execute(script, [], "__main__")
    return found


def copies(values: Sequence[Any]) -> list[Any]:
    return [value.copy() if isinstance(value, np.ndarray) else value for value in values]


class Bench:
    """A kernel's call, and the expected contents of its arrays after it.

    Args:
        call: the call; its arguments are not changed.

    Attributes:
        launch: the run of the original kernel.
        known: the hazards of the original kernel.
        queues: the ops of each pipe of the original kernel.
    """

    def __init__(self, call: Call) -> None:
        self.call = call
        self._arguments = copies(call.arguments)
        self._written: list[int] = []
        self.launch = self.run(call.program)
        users = self.launch.recorded.bound.users
        self._written = [number for number, place in enumerate(users) if place in call.program.written]
        self._right = [self._arguments[number].copy() for number in self._written]
        self.known = {hazard.key for hazard in self.launch.hazards}
        self.queues = queues(self.launch)
        self._written_early = self._writes(call.program, "early")

    def run(self, program: Program) -> Launch:
        """Runs the kernel, or a mutant, with the call's arguments, in program order.

        Raises:
            TileError: a deadlock or an invalid access.
        """
        return Launch(self._run(program, None, None))

    def right(self) -> bool:
        """Whether the arrays have the expected contents after the last run."""
        return all(np.array_equal(self._arguments[number].reshape(-1).view("u1"), right.reshape(-1).view("u1"))
                   for number, right in zip(self._written, self._right, strict=True))

    def goes_wrong(self, program: Program, schedule: str | None = None, left: Left | None = None) -> bool:
        """Whether a run gives other results, or hangs."""
        try:
            self._run(program, schedule, left)
        except TileError:
            return True
        return not self.right()

    def writes_else(self, program: Program, schedule: str) -> str:
        """Returns where a schedule writes other numbers than the original kernel, also temporarily: ``on the way`` (global
        memory), ``on chip``, or an empty string."""
        found = self._writes(program, schedule)
        other = {key[2] for key in {*found, *self._written_early} if found.get(key) != self._written_early.get(key)}
        return "on the way" if "gm" in other else "on chip" if other else ""

    def _writes(self, program: Program, schedule: str) -> dict[tuple[Any, str, str], list[int]]:
        """Returns the values that ops read and write, by core, pipe and memory; without races, they are equal under all
        schedules."""
        found: dict[tuple[Any, str, str], list[int]] = {}
        self._run(program, schedule, None, lambda core, pipe, memory, tile: found.setdefault((core, pipe, memory), []).append(
            crc32(tile.tobytes())))
        return found

    def changes(self, program: Program, hazards: Sequence[Hazard]) -> bool:
        """Whether an op whose write is not ordered, according to one of the hazards, changes any byte from the time of the
        hazard on."""
        writers = {site for hazard in hazards
                   for site in ([hazard.first] if hazard.kind in ("RAW", "WAW") else []) +
                   ([hazard.second] if hazard.kind in ("WAR", "WAW") and hazard.second is not None else [])}
        since: dict[tuple[str, int], int] = {}
        for site in writers:
            key = site.core[:3], site.number
            since[key] = min(site.iteration, since.get(key, site.iteration))
        watch = Changes(since)
        for number in self._written:
            np.copyto(self._arguments[number], self.call.arguments[number])
        program.run(self._arguments, blocks=self.call.blocks, observer=watch)
        return watch.seen or not writers

    def _run(self, program: Program, schedule: str | None, left: Left | None, stores: Stores | None = None) -> RecordedLaunch:
        for number in self._written:
            np.copyto(self._arguments[number], self.call.arguments[number])
        return program.run(self._arguments, blocks=self.call.blocks, schedule=schedule, left=left, stores=stores)


class Changes:
    """An observer that checks whether the writes of some ops change the bytes.

    Args:
        since: the ops by core and number, with the number of executions after which each is checked.

    Attributes:
        seen: whether an op changed a byte.
    """

    def __init__(self, since: Mapping[tuple[str, int], int]) -> None:
        self._since = since
        self._runs: Counter[tuple[int, int, int]] = Counter()
        self.seen = False

    def before(self, block: int, sub: int, op: Operation, record: OpRecord, reads: Sequence[Any], writes: Sequence[Any]) -> Any:
        """Copies the bytes before the op."""
        since = self._since.get((record.core, record.number))
        if since is None:
            return None
        place = block, sub, record.number
        self._runs[place] += 1
        return [(array, array.copy()) for array in writes] if self._runs[place] > since else None

    def after(self, kept: Any) -> None:
        """Compares the bytes after the op with the copy."""
        self.seen = self.seen or any(array.tobytes() != old.tobytes() for array, old in kept or ())


def queues(launch: Launch) -> list[Any]:
    """Returns the ops of each pipe of each core, in order, each with the number of earlier steps of the scalar unit.

    Kernels with equal queues behave the same under every schedule, since every pipe waits for the scalar unit.
    """
    found = []
    program = launch.recorded.program
    for run in launch.recorded.blocks:
        for (index, _), stream, offsets in zip(program.lanes, run.streams, run.gm, strict=True):
            pipes: list[list[Any]] = [[] for _ in PIPES]
            records = program.functions[index].records
            for done in replay(records, stream, offsets):
                slots = done.event[1:] if isinstance(done.event, tuple) else ()
                for place, step in enumerate(launch.expansions[index].of(done.event)):
                    pipe = max(step[1], 0)  # a barrier of all pipes belongs to the scalar unit
                    goal = len(pipes[step[2]]) if step[0] == JOIN else 0
                    pipes[pipe].append((replace(done.record, number=0), slots, done.gm, place, goal, len(pipes[0])))
            found.append(pipes)
    return found


def sites(module: ModuleOp, kernel: str) -> list[Operation]:
    """Returns the synchronising ops of one kernel of a module."""
    return [op for _, function in kernel_of(module, kernel)[1] for op in function.walk() if isinstance(op, SYNC)]


def waiting_in_front(module: ModuleOp) -> ModuleOp:
    """Returns a module in which gemms wait for both operands before they read any."""
    made = module.clone()
    for op in [op for op in made.walk() if isinstance(op, (hivm.MmadL1Op, hivm.BatchMmadL1Op))]:
        waits = [(event, number) for event, number in op.shared_events() if not event.sets and event not in op.HALVES]
        if waits:
            none = arith.ConstantOp.from_int_and_width(hivm.NO_EVENT, 64)
            for event, number in waits:
                Rewriter.insert_op(hivm.WaitFlagOp(event.source, event.target, number), InsertPoint.before(op))
            Rewriter.insert_op(none, InsertPoint.before(op))
            op.set_sync_arguments({event.place: none.result for event, _ in waits}, none.result)
    return made


def mutated(module: ModuleOp, kernel: str, number: int, kind: str) -> ModuleOp | None:
    """Returns the module with one synchronising op of a kernel deleted or moved; None if that is impossible."""
    made = module.clone()
    op = sites(made, kernel)[number]
    block = op.parent_block()
    assert block is not None
    if kind == "deleted":
        block.erase_op(op)
        return made
    other = op.next_op if kind == "moved down" else op.prev_op
    if other is None or other.has_trait(IsTerminator) or any(operand.owner is other for operand in op.operands):
        return None
    op.detach()
    (block.insert_op_after if kind == "moved down" else block.insert_op_before)(op, other)
    return made


def count_set(left: Left) -> int:
    """Returns the number of sets without a wait."""
    return sum(sum(core.events.values()) + sum(core.flags.values()) for core in left.values())


def judged(module: ModuleOp, bench: Bench, schedules: Sequence[str]) -> Verdict:
    """Runs a mutant with the sanitizer and under schedules, and returns its verdict."""
    call = bench.call
    program = Program(module, call.program.chip, entry=call.program.name)
    static = check(program, call.arguments, call.blocks)
    errors = {error.code for error in static.errors}
    try:
        launch = bench.run(program)
    except TileError as error:
        return Verdict("wrong", [error.message], "program order", error.code in errors)
    right = bench.right()
    new = [hazard for hazard in launch.hazards if hazard.key not in bench.known]
    known, seen = ({hazard.key for hazard in those} for those in (static.hazards, launch.hazards))
    agrees = not errors and (known == seen or (known > seen and bool(static.notes)))

    def verdict(fate: str, shown: str = "") -> Verdict:
        return Verdict(fate, [str(hazard) for hazard in new], shown, agrees)

    if not right:
        return verdict("wrong", "program order")
    if queues(launch) == bench.queues:
        return verdict("twice" if new and all(hazard.code == "S212" for hazard in new) else "same")
    shown = next((schedule for schedule in schedules if bench.goes_wrong(program, schedule)), "")
    if shown:
        return verdict("wrong", shown)
    if any(hazard.kind != "flag" for hazard in new):
        fates = {bench.writes_else(program, schedule): schedule for schedule in reversed(schedules)}
        for fate in ("on the way", "on chip"):
            if fate in fates:
                return verdict(fate, fates[fate])
    if any(hazard.kind == "flag" for hazard in new):
        left: Left = {}
        if bench.goes_wrong(program, "early", left):
            return verdict("wrong", "early")
        for schedule in schedules:
            if bench.goes_wrong(program, schedule, deepcopy(left)):
                return verdict("launch 2", schedule)
        again = deepcopy(left)
        bench.goes_wrong(program, "early", again)
        if count_set(again) > count_set(left):
            return verdict("piles up")
    sites = [site for hazard in new for site in (hazard.first, hazard.second) if site is not None]
    if any(site.pipe == "S" for site in sites):
        return verdict("scalar")
    if new and all(hazard.code == "S212" for hazard in new):
        return verdict("twice")
    if new and any(site.pipe == "MTE1" for site in sites) and not bench.run(
            Program(waiting_in_front(module), call.program.chip, entry=call.program.name)).hazards:
        return verdict("inside")
    return verdict("unchanged" if not bench.changes(program, [hazard for hazard in new if hazard.kind != "flag"])
                   else "scratch" if any(site.operand == "temp_buffer" for site in sites) else "right")


def mutants(call: Call, most: int, seed: int) -> Iterator[tuple[int, str, ModuleOp]]:
    """Yields the mutants of a kernel in random order: the number of the op, the kind of mutation, and the module."""
    every = [(number, kind) for number in range(len(sites(call.program.module, call.program.name))) for kind in KINDS]
    random.Random(seed).shuffle(every)
    for number, kind in every[:most]:
        module = mutated(call.program.module, call.program.name, number, kind)
        if module is not None:
            yield number, kind, module


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scripts", nargs="+", type=Path)
    parser.add_argument("--mutants", type=int, default=200, help="mutants of each kernel at most (default 200)")
    parser.add_argument("--schedules", type=int, default=50, help="random schedules of each mutant (default 50)")
    parser.add_argument("--blocks", type=int, default=2, help="number of blocks to run of each kernel (default 2)")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="time limit for the mutants of a script")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    schedules = ["late", "early", *(f"random:{seed}" for seed in range(options.schedules))]
    table: Counter[tuple[bool, str]] = Counter()
    disagreed = 0
    for script in options.scripts:
        started, before = time.monotonic(), table.total()
        for call in calls_of(script, options.blocks):
            try:
                bench = Bench(call)
            except TileError as error:
                print(f"{script}: {call.program.name} does not run on {call.blocks} blocks: {error.message}")
                continue
            hazards: list[Hazard] = bench.launch.hazards
            tried = schedules if hazards else schedules[:6]  # only some schedules may expose a race of the original kernel
            unstable = [schedule for schedule in tried if bench.goes_wrong(call.program, schedule)]
            if unstable or hazards:
                first = str(hazards[0]) if hazards else "no hazard"
                print(f"{script}: {call.program.name} itself: {first}; differs under {unstable or 'none'}")
            if unstable:
                continue
            for number, kind, module in mutants(call, options.mutants, options.seed):
                if time.monotonic() - started > options.seconds:
                    break
                verdict = judged(module, bench, schedules)
                table[bool(verdict.reported), verdict.fate] += 1
                op = sites(call.program.module, call.program.name)[number]
                if not verdict.checked:
                    disagreed += 1
                    print(f"{script}: {call.program.name}: {op} {kind}: the check disagrees")
                if bool(verdict.reported) != (verdict.fate not in ("same", "right")):
                    said = verdict.reported[0] if verdict.reported else verdict.shown
                    print(f"{script}: {call.program.name}: {op} {kind}: {verdict.fate}: {said}")
        print(f"{script}: {table.total() - before} mutants, {time.monotonic() - started:.0f} s", flush=True)
    print(f"\n{f'{table.total()} mutants':14}" + "".join(f"{fate:>11}" for fate in FATES))
    for reported in (True, False):
        print(f"{'reported' if reported else 'not reported':14}" + "".join(f"{table[reported, fate]:>11}" for fate in FATES))
    print(f"\nthe check without data agrees on {table.total() - disagreed} of them")
    bad = sum(table[False, fate] for fate in WRONG) + table[True, "same"] + table[True, "right"]
    return 1 if bad or disagreed else 0


if __name__ == "__main__":
    sys.exit(main())
