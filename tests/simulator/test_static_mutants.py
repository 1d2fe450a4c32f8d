"""Modules with one error: a run with the sanitizer and the static check have the same findings.

A mutant has another address space, core, event, constant, operand, op or order. ``TILELANG_MUTANTS=100`` sets the number of
mutants of each example, and the number of random modules.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from simulator.mutants import SIZES, Mutant, blocks_of, mutants, random_text, text_of
from tilelang_npu.cli.sim import parameters_of
from tilelang_npu.dialects.text import parse_module
from tilelang_npu.errors import TileError
from tilelang_npu.runtime.reports.profiler import TensorSupplyType, make_array
from tilelang_npu.simulator import Launch, Program
from tilelang_npu.simulator.result.static_check import check
from tilelang_npu.simulator.sanitizer.hazard import Hazard

COUNT = int(os.environ.get("TILELANG_MUTANTS", "6"))
BASES = ["rms_norm", "minicv_expert", "w4a8_gemm", "random 0", "random 1"] if COUNT <= 6 else [
    *SIZES, *(f"random {seed}" for seed in range(COUNT))]
SEED = int(os.environ.get("TILELANG_MUTANTS_SEED", "0"))
MOST_OPS = 200_000


def _of_error(error: TileError) -> tuple[object, ...]:
    return "error", error.code, error.location and error.location.line, error.message


def _of_hazard(hazard: Hazard) -> tuple[object, ...]:
    sites = (site for site in (hazard.first, hazard.second) if site is not None)
    return hazard.code, hazard.kind, hazard.memory, *((site.op, site.location and site.location.line) for site in sites)


def _said(work: Callable[[Program, list[Any]], set[object]], text: str, *, blank: bool) -> set[object]:
    """The verdicts on a module, from its text on."""
    try:
        program = Program(parse_module(text, "kernel.mlir"))
        rng = np.random.default_rng(SEED)
        args: list[Any] = [make_array(parameter.element, parameter.shape or (), TensorSupplyType.Auto, rng)
                           for parameter in parameters_of(program.device_functions[0])]
        return work(program, [np.zeros_like(array) for array in args] if blank else args)
    except TileError as error:
        return {_of_error(error)}


def verdicts(text: str) -> tuple[set[object], set[object]]:
    """Returns the findings of a run of a module, and of the check."""
    blocks = blocks_of(text)

    def run(program: Program, args: list[Any]) -> set[object]:
        return {_of_hazard(hazard) for hazard in Launch(program.run(args, blocks=blocks, most_ops=MOST_OPS)).hazards}

    def look(program: Program, args: list[Any]) -> set[object]:
        done = check(program, args, blocks, most_ops=MOST_OPS)
        return {*map(_of_error, done.errors), *map(_of_hazard, done.hazards)}

    return _said(run, text, blank=False), _said(look, text, blank=True)


def _base(name: str) -> str:
    kind, _, seed = name.partition(" ")
    return random_text(int(seed)) if kind == "random" else text_of(name)


@pytest.mark.parametrize("name", BASES)
def test_a_run_and_a_check_say_the_same_of_a_mutant(name: str) -> None:
    text = _base(name)
    assert verdicts(text) == (set(), set())
    differ: list[tuple[Mutant, object, object]] = []
    wrong = 0
    for mutant in itertools.islice(mutants(name, text, SEED), COUNT):
        run, checked = verdicts(mutant.text)
        wrong += bool(run)
        if run != checked:
            differ.append((mutant, run - checked, checked - run))
    assert not differ, "\n".join(f"{one.kind} at line {one.line}: the run says {sorted(map(str, first))}, the check "
                                 f"{sorted(map(str, second))}" for one, first, second in differ)
    assert wrong, "no mutant is wrong"


def test_code_after_a_wait_that_never_ends_is_not_checked() -> None:
    """The run hangs at the wait; a store out of bounds after it, which no core reaches, is not reported."""
    gm, part = "memref<64xf32, #hivm.address_space<gm>>", "memref<64xf32, strided<[1], offset: ?>, #hivm.address_space<gm>>"
    ub = "memref<64xf32, #hivm.address_space<ub>>"
    head = ("attributes {hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>, hivm.func_core_type = "
            "#hivm.func_core_type<%s>} {\n")
    wait = "    hivm.hir.sync_block_wait[<VECTOR>, <PIPE_FIX>, <PIPE_MTE3>] flag = 1\n"
    text = ('module attributes {hacc.target = #hacc.target<"Ascend910B2">} {\n'
            f"  func.func @k_mix_aic(%A: {gm}) {head % 'AIC'}    return\n  }}\n  func.func @k_mix_aiv(%A: {gm}) {head % 'AIV'}"
            "    %zero = arith.constant 0 : i64\n    %c60 = arith.constant 60 : index\n"
            "    %bid = hivm.hir.get_block_idx -> i64\n    %b = arith.index_cast %bid : i64 to index\n"
            "    %off = arith.addi %b, %c60 : index\n"
            f"    %u = hivm.hir.pointer_cast(%zero) : {ub}\n{wait}"
            f"    %g = memref.reinterpret_cast %A to offset: [%off], sizes: [64], strides: [1] : {gm} to {part}\n"
            f"    hivm.hir.store ins(%u : {ub}) outs(%g : {part})\n    return\n  }}\n}}\n")
    for module, code in ((text, "S302"), (text.replace(wait, ""), "T502")):
        run, checked = verdicts(module)
        assert run == checked
        assert {one[1] for one in run} == {code}  # type: ignore[index]  # errors
