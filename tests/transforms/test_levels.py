"""The invariants of the module after each pass, as in the pipeline's table, on kernels and on the inputs of the passes'
tests."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

import pytest
from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp

from tilelang_npu.analysis.cores import is_mixed
from tilelang_npu.cli.compile_file import compiled
from tilelang_npu.dialects import hivm
from tilelang_npu.dialects.context import make_context
from tilelang_npu.dialects.text import parse_module, print_module
from tilelang_npu.errors import TileError
from tilelang_npu.transforms import pipeline
from tilelang_npu.transforms.hivm.send_scalars import SendScalars
from tilelang_npu.transforms.infra.levels import RULES, Level, rule_violations, violations
from tilelang_npu.transforms.infra.stage_table import Row
from transforms.pass_kernels import CALLS

TESTS = Path(__file__).resolve().parents[1]
SCRIPTS = [*sorted((TESTS.parent / "examples").glob("*.py")), *sorted((TESTS / "frontend" / "kernels").glob("*.py"))]
INPUTS = sorted((TESTS / "filecheck").glob("*/*.mlir"))
RUN = re.compile(r"^// RUN: tilelang-npu opt %s .*?-p '?(.+?)'? *(?:--\S+ .*)?\|", re.MULTILINE)


def left(module: ModuleOp, options: pipeline.Options, rows: Sequence[Row]) -> dict[str, list[str]]:
    """Returns the violations of the rows' levels after the passes of some rows, by stage."""
    found: dict[str, list[str]] = {}
    for row in rows:
        row.create_pass(options).apply(make_context(), module)
        found[row.name] = violations(module, row.level)
    return {name: report for name, report in found.items() if report}


@pytest.mark.parametrize("script", SCRIPTS, ids=[file.stem for file in SCRIPTS])
def test_a_kernel_is_at_its_level_after_each_pass(script: Path) -> None:
    _, kernels = compiled(str(script), None)
    lowerings = {print_module(one.traced.module): one for one in (kernel._lowering for kernel in kernels)}
    assert lowerings
    for one in lowerings.values():
        assert violations(one.traced.module, "tile") == []
        assert left(one.traced.module.clone(), one.options, pipeline.ROWS) == {}


@pytest.mark.parametrize("name", CALLS)
def test_hivm_of_other_tools_is_at_its_level_after_each_pass(name: str) -> None:
    kernel = CALLS[name][0]()
    text = re.sub(r",? *hivm.func_core_type = #hivm.func_core_type<\w+>", "", kernel.mlir("hivm-auto"))
    assert left(parse_module(text), kernel._lowering.options, pipeline.foreign_rows()) == {}


def parts(file: Path) -> list[tuple[list[str], str]]:
    """The passes of a test's first line, and each of its modules."""
    text = file.read_text(encoding="utf-8")
    found = RUN.search(text)
    names = re.sub(r"\{.*?\}", "", found[1]).split(",") if found else []
    return [(names, part) for part in re.split(r"^// -----.*\n?", text, flags=re.MULTILINE)]


def test_a_pass_brings_the_inputs_of_its_tests_to_its_level() -> None:
    """Invariants that hold before a pass hold after it; if all invariants of the previous level hold, all of the new level
    do."""
    own = {row.name: row.level for row in pipeline.ROWS}
    before: dict[str, Level] = dict(zip(own, ["tile", *own.values()], strict=False))
    known, whole, wrong = pipeline.passes(), 0, []
    for file, names, text in [(one, *part) for one in INPUTS for part in parts(one)]:
        if not names or not set(names) <= own.keys():
            continue
        try:
            module = parse_module(text, allow_unregistered=True)
            for name in names:
                held = [rule for rule in RULES[before[name]] if not any(rule_violations(module, rule))]
                legal = len(held) == len(RULES[before[name]])
                known[name]().apply(make_context(), module)
                whole += legal
                wrong += [f"{file.stem}: {name}: {rule.__name__}" for rule in RULES[own[name]]
                          if (legal or rule in held) and any(rule_violations(module, rule))]
        except TileError:  # an input that is to be refused
            continue
    assert wrong == []
    assert whole > 150


HEAD = "func.func @k(%g: memref<16xf32, #hivm.address_space<gm>>) attributes {hacc.entry"
BUFFER = "%u = memref.alloc() : memref<16xf32, #hivm.address_space<ub>>"
WORK = "hivm.hir.vrelu ins(%u : memref<16xf32, #hivm.address_space<ub>>) outs(%u : memref<16xf32, #hivm.address_space<ub>>)"
POINTER = "%a = arith.constant 0 : i64\n%u = hivm.hir.pointer_cast(%a) : memref<16xf32, #hivm.address_space<ub>>"
ONE = "hivm.func_core_type = #hivm.func_core_type<AIV>"
BOTH = "hivm.func_core_type = #hivm.func_core_type<MIX>"
NOTED = WORK.replace("vrelu", "vrelu {hivm.tcore_type = #hivm.tcore_type<VECTOR>}")
OPEN = '%x = tile.alloc "x" : memref<16xf32, #tile.scope<shared>>'


@pytest.mark.parametrize(("level", "kind", "body", "expected"), [
    ("tile", "", BUFFER, ["memref.alloc is of HIVM's buffers, which lowering makes"]),
    ("scoped", "", OPEN, ["tile.alloc has no memory"]),
    ("mixed", "", BUFFER, ["func.func does not say its cores"]),
    ("mixed", BOTH, f"{BUFFER}\n{WORK}", ["hivm.hir.vrelu has no core"]),
    ("mixed", BOTH, f"{BUFFER}\n{NOTED}", []),
    ("mixed", ONE, f"{BUFFER}\n{WORK}", []),
    ("lowered", ONE, OPEN, ["tile.alloc has no memory", "tile.alloc is of the tile dialect"]),
    ("split", BOTH, BUFFER, ["func.func is not one core's"]),
    ("split", ONE, f"{BUFFER}\n{NOTED}", ["hivm.hir.vrelu carries a core although its function has one"]),
    ("split", ONE, "%i = arith.constant 0 : index\n%j = tile.by_core cube %i vector %i : index",
     ["tile.by_core is for two cores"]),
    ("planned", ONE, BUFFER, ["memref.alloc has no address"]),
    ("planned", ONE, POINTER, []),
    ("synchronised", ONE, POINTER, ["func.func has no waits"]),
])
def test_what_breaks_a_level(level: Level, kind: str, body: str, expected: list[str]) -> None:
    attributes = f", {kind}" if kind else ""
    assert violations(parse_module(f"{HEAD}{attributes}}} {{\n{body}\nreturn\n}}"), level) == expected


def test_an_op_that_a_pass_makes_without_a_core_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    one, made = CALLS["both_cores"][0]()._lowering, SendScalars.apply
    last = [row.name for row in pipeline.ROWS].index("send-scalars")

    def careless(self: SendScalars, ctx: Context, op: ModuleOp) -> None:
        made(self, ctx, op)
        kernel = next(inner for inner in op.walk() if isinstance(inner, func.FuncOp) and is_mixed(inner))
        assert kernel.body.block.first_op is not None
        kernel.body.block.insert_op_before(hivm.PipeBarrierOp("ALL"), kernel.body.block.first_op)

    monkeypatch.setattr(SendScalars, "apply", careless)
    assert left(one.traced.module.clone(), one.options, pipeline.ROWS[:last + 1]) == {
        "send-scalars": ["hivm.hir.pipe_barrier has no core"]}
    with pytest.raises(TileError, match="pipe_barrier has no core yet; run assign-cores first"):
        pipeline.lower(one.traced.module.clone(), one.options)


def test_every_level_has_its_rules() -> None:
    assert set(RULES) == set(get_args(Level))
    assert {row.level for row in (*pipeline.ROWS, *pipeline.foreign_rows(), *pipeline.PLANNED)} <= set(RULES)
