"""A kernel's files for the vendor's toolchain, and the comments in its text."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import tilelang_npu as tilelang
from samples import SYNC, doubled, product, scaled, symbolic_rows
from tilelang_npu.dialects.text import parse_module, print_module


def test_the_files(tmp_path: Path) -> None:
    kernel = tilelang.compile(product(), out_idx=[2], target="npuir", chip="910B3")
    files = kernel.export(tmp_path / "out")
    assert [file.name for file in files] == [f"{kernel.name}{end}" for end in (".mlir", ".auto.mlir", ".json")] + ["README.md"]
    texts = [file.read_text() for file in files]
    assert texts[:2] == [kernel.mlir(), kernel.mlir("hivm-auto")]
    facts = json.loads(texts[2])
    (launch,) = facts["launches"]
    assert (facts["chip"], launch["cores"], launch["functions"]) == ("Ascend910B3", "AIC", [kernel.name])
    assert [(a["name"], a["type"], a["shape"], a["direction"]) for a in facts["arguments"] if a["role"] == "user"] == [
        ("A", "f16", [128, 64], "in"), ("B", "f16", [64, 64], "in"), ("C", "f32", [128, 64], "out")]
    entry = parse_module(texts[0]).body.block.last_op
    assert len(facts["arguments"]) == len(entry.body.block.args)
    assert f"bishengir-compile {kernel.name}.mlir -enable-hivm-compile=true --disable-hivm-auto-inject-sync" in texts[3]
    assert f"launch {launch['blocks']} blocks" in texts[3]


def test_what_a_call_decides_is_left_open(tmp_path: Path) -> None:
    kernel = tilelang.compile(symbolic_rows(), out_idx=[-1], target="ascendc", pass_configs=SYNC)
    *_, manifest, readme = kernel.export(tmp_path)
    facts = json.loads(manifest.read_text())
    assert [launch["blocks"] for launch in facts["launches"]] == [None]
    assert [a["shape"][1:] for a in facts["arguments"] if a["role"] == "user" and "shape" in a] == [[64], [64]]
    assert all(isinstance(a["shape"][0], str) for a in facts["arguments"] if a["role"] == "user" and "shape" in a)
    assert "as many blocks as the grid has points" in readme.read_text()


def test_numbers_are_arguments_too(tmp_path: Path) -> None:
    kernel = tilelang.compile(scaled(), target="ascendc", pass_configs=SYNC)
    facts = json.loads(kernel.export(tmp_path)[2].read_text())
    assert [a["direction"] for a in facts["arguments"] if a["role"] == "user"] == ["in", "in", "out"]
    assert [a["type"] for a in facts["arguments"] if "shape" not in a and a["role"] == "user"] == ["f32"]


@pytest.mark.parametrize("stage", ["tile", "hivm-auto", "hivm"])
def test_comments(stage: str) -> None:
    kernel = doubled(32, 64)
    text = kernel.mlir(stage, annotate=True)
    assert print_module(parse_module(text)) == kernel.mlir(stage)
    assert "  // " not in kernel.mlir(stage)
    added = {"tile": r"tile\.elementwise", "hivm-auto": r"hivm\.hir\.vadd", "hivm": r"hivm\.hir\.vadd"}[stage]
    (comment,) = re.findall(rf"{added}.*  // (.*)", text)
    assert re.fullmatch(r"samples\.py:\d+, \d+ B" + (r", (\d+ x )?\d+ cycles" if stage == "hivm" else ""), comment)


def test_cycles_are_those_of_the_operation() -> None:
    """Four times the columns take longer; loads of a loop say how often they run."""

    def spent(columns: int) -> int:
        text = doubled(32, columns).mlir(annotate=True)
        ((times, cycles),) = re.findall(r"hivm\.hir\.vadd .*  // .* (?:(\d+) x )?(\d+) cycles", text)
        return int(times or 1) * int(cycles)

    assert spent(256) > 2 * spent(64) > 0
