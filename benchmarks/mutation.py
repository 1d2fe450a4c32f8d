"""Does the sanitizer see what a schedule can show? One wait, set, barrier or flag less, or in the wrong place, at a time.

    python benchmarks/mutation.py SCRIPT.py [...] [--mutants 200] [--schedules 50] [--seed 0]

Each script runs once; its kernels, with the arguments of their first call, are then run as mutants: one synchronising op
deleted, or moved past the op before or behind it. A mutant is *wrong* if its values differ, or it hangs, in program order or
under one of the schedules (early, late, random ones). It is *reported* if the sanitizer finds a hazard that the kernel itself
does not have, or says that it hangs. The check without data has to say the same of every mutant. The table must have nothing
that is wrong and not reported; what is reported and right everywhere is listed: flags left over (the next launch would find
them set), or races that no schedule tried shows.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.traits import IsTerminator

from tilelang_npu.cli.script import execute
from tilelang_npu.dialects import hivm
from tilelang_npu.errors import TileError
from tilelang_npu.simulator import Launch, Program
from tilelang_npu.simulator.hazards import Hazard
from tilelang_npu.simulator.static_check import check

SYNC = (hivm.SetFlagOp, hivm.WaitFlagOp, hivm.PipeBarrierOp, hivm.SyncBlockSetOp, hivm.SyncBlockWaitOp, hivm.SyncBlockOp)
KINDS = ("deleted", "moved down", "moved up")


@dataclass(frozen=True)
class Call:
    """A kernel and what it was called with."""

    program: Program
    arguments: list[Any]
    blocks: int


@dataclass(frozen=True)
class Verdict:
    """What became of a mutant.

    Attributes:
        reported: the hazards that are new.
        shown: the schedule that shows it wrong; empty where none does.
        checked: whether the check without data finds the same.
    """

    reported: list[str]
    shown: str
    checked: bool


def calls_of(script: Path, most_blocks: int) -> list[Call]:
    """The kernels that a script runs, each with its first arguments; with fewer blocks where blocks are alone."""
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


def outcome(program: Program, call: Call, schedule: str | None) -> tuple[Launch, list[bytes]]:
    """A launch and the bytes it leaves."""
    arguments = copies(call.arguments)
    recorded = program.run(arguments, blocks=call.blocks, schedule=schedule)
    return Launch(recorded), [array.tobytes() for array in arguments if isinstance(array, np.ndarray)]


def sites(module: ModuleOp) -> list[Operation]:
    return [op for op in module.walk() if isinstance(op, SYNC)]


def mutated(module: ModuleOp, number: int, kind: str) -> ModuleOp | None:
    """The module with one synchronising op deleted or moved; None where it cannot be."""
    made = module.clone()
    op = sites(made)[number]
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


def judged(module: ModuleOp, call: Call, right: list[bytes], known: set[object], schedules: Sequence[str]) -> Verdict:
    """What the sanitizer and the schedules say of a mutant."""
    program = Program(module, call.program.chip)
    static = check(program, copies(call.arguments), call.blocks)
    errors = {error.code for error in static.errors}
    try:
        launch, written = outcome(program, call, None)
        hazards = launch.hazards
    except TileError as error:
        return Verdict([error.message], "program order", error.code in errors)
    reported = [str(hazard) for hazard in hazards if hazard.key not in known]
    agrees = not errors and {hazard.key for hazard in static.hazards} == {hazard.key for hazard in hazards}
    if written != right:
        return Verdict(reported, "program order", agrees)
    for schedule in schedules:
        try:
            if outcome(program, call, schedule)[1] != right:
                return Verdict(reported, schedule, agrees)
        except TileError:
            return Verdict(reported, schedule, agrees)
    return Verdict(reported, "", agrees)


def mutants(call: Call, most: int, seed: int) -> Iterator[tuple[int, str, ModuleOp]]:
    """Mutants of a kernel in random order: the op's number, what was done to it, and the module."""
    every = [(number, kind) for number in range(len(sites(call.program.module))) for kind in KINDS]
    random.Random(seed).shuffle(every)
    for number, kind in every[:most]:
        module = mutated(call.program.module, number, kind)
        if module is not None:
            yield number, kind, module


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scripts", nargs="+", type=Path)
    parser.add_argument("--mutants", type=int, default=200, help="mutants of each kernel at most (default 200)")
    parser.add_argument("--schedules", type=int, default=50, help="random schedules of each mutant (default 50)")
    parser.add_argument("--blocks", type=int, default=2, help="blocks that run of each kernel (default 2)")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    schedules = ["late", "early", *(f"random:{seed}" for seed in range(options.schedules))]
    table: Counter[tuple[bool, bool]] = Counter()
    only_flags = disagreed = 0
    for script in options.scripts:
        started, before = time.monotonic(), table.total()
        for call in calls_of(script, options.blocks):
            try:
                launch, right = outcome(call.program, call, None)
            except TileError as error:
                print(f"{script}: {call.program.name} does not run on {call.blocks} blocks: {error.message}")
                continue
            unstable = [schedule for schedule in schedules[:6] if outcome(call.program, call, schedule)[1] != right]
            hazards: list[Hazard] = launch.hazards
            if unstable or hazards:
                first = str(hazards[0]) if hazards else "no hazard"
                print(f"{script}: {call.program.name} itself: {first}; differs under {unstable or 'none'}")
            if unstable:
                continue
            known = {hazard.key for hazard in hazards}
            for number, kind, module in mutants(call, options.mutants, options.seed):
                verdict = judged(module, call, right, known, schedules)
                table[bool(verdict.reported), bool(verdict.shown)] += 1
                if not verdict.checked:
                    disagreed += 1
                    print(f"{script}: {call.program.name}: {sites(call.program.module)[number]} {kind}: the check disagrees")
                flags = all(text.startswith("flag") for text in verdict.reported)
                only_flags += bool(verdict.reported) and not verdict.shown and flags
                if (verdict.shown and not verdict.reported) or (verdict.reported and not verdict.shown and not flags):
                    op = sites(call.program.module)[number]
                    print(f"{script}: {call.program.name}: {op} {kind}: {verdict.shown or verdict.reported[0]}")
        print(f"{script}: {table.total() - before} mutants, {time.monotonic() - started:.0f} s", flush=True)
    print(f"\n{table.total()} mutants{'wrong':>12}{'right under all schedules':>30}")
    for reported in (True, False):
        note = f"   ({only_flags} of them: a flag is left set)" if reported else ""
        print(f"{'reported' if reported else 'not reported':12}{table[reported, True]:>12}{table[reported, False]:>30}{note}")
    print(f"\nthe check without data says the same of {table.total() - disagreed} of them")
    return 1 if table[False, True] or disagreed else 0


if __name__ == "__main__":
    sys.exit(main())
