"""Whole kernels in this package's own words: they verify, are written in their canonical form and come back unchanged."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from tilelang_npu.dialects import hivm
from tilelang_npu.dialects.text import parse_module, print_module
from tilelang_npu.errors import TileError

MODULES = sorted((Path(__file__).parent / "modules").glob("*.mlir"))


def _canonical(text: str) -> str:
    """The text without comments and aliases, each function's head on one line."""
    aliases = dict(re.findall(r"^(#\w+) = (.*)\n", text, re.MULTILINE))
    text = re.sub(r"^(//.*|#\w+ = .*)\n", "", text, flags=re.MULTILINE)
    for alias, meaning in aliases.items():
        text = re.sub(rf"{alias}\b(?!\.)", meaning, text)
    return re.sub(r"\n +attributes \{", " attributes {", text)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_verifies_and_is_printed_unchanged(path: Path) -> None:
    text = path.read_text()
    module = parse_module(text, str(path))
    written = print_module(module)
    if path.stem != "on_tensors":  # which spells some defaults out
        assert written == _canonical(text)
    assert print_module(parse_module(written)) == written
    generic = print_module(module, generic=True)
    assert print_module(parse_module(generic)) == written
    assert print_module(parse_module(generic), generic=True) == generic
    located = print_module(module, locations=True)
    assert print_module(parse_module(located), locations=True) == located


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_the_spelling_of_the_release_comes_back(path: Path) -> None:
    module = parse_module(path.read_text(), str(path))
    if path.stem == "on_tensors":
        with pytest.raises(TileError, match=r"v1\.0\.0 has no 'eviction_policy' on hivm\.hir\.load"):
            print_module(module, toolchain="1.0.0")
        return
    older = print_module(module, toolchain="1.0.0")
    assert print_module(parse_module(older)) == print_module(module)
    assert ("enable_nz2nd" in older) is ("dma_mode" in print_module(module))


def test_pipes_of_a_kernel() -> None:
    module = parse_module((Path(__file__).parent / "modules" / "vector_two_slots.mlir").read_text())
    pipes = Counter(op.pipes() for op in module.walk() if isinstance(op, hivm.StructuredOp))
    assert pipes == {("MTE2",): 1, ("V",): 2, ("MTE3",): 1}
    flags = [op for op in module.walk() if isinstance(op, (hivm.SetFlagOp, hivm.WaitFlagOp))]
    assert (flags[0].name, *flags[0].pipes(), flags[0].event_id()) == ("hivm.hir.set_flag", "V", "MTE2", 0)
    assert {op.core() for op in module.walk() if isinstance(op, hivm.StructuredOp)} == {"AIV"}
