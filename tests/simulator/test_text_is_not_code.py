"""A module from a file is data: no name or text in it becomes a part of the code that is generated for it."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T
from tilelang_npu.cli import main
from tilelang_npu.dialects.text import parse_module
from tilelang_npu.simulator import Program
from tilelang_npu.target import chip


def _stopped(rows: int) -> Any:
    @T.prim_func
    def stopped(X: T.Tensor((rows, 64), "float32"), Y: T.Tensor((rows, 64), "float32")):  # type: ignore[no-untyped-def]
        with T.Kernel(1, is_npu=True) as (_, half):
            x = T.alloc_shared((rows, 64), "float32")
            T.copy(X, x)
            T.vexp(x, x)
            breakpoint()
            T.copy(x, Y)

    return stopped


def _escaped(text: str) -> str:
    """A name of the IR that stands for any text, see ``dialects/names.py``."""
    return "".join(one if one.isalnum() or one == "_" else f"${ord(one):x}." for one in text)


def _payload(marker: Path) -> str:
    return f"__import__('os').mkdir('{marker}')"


CHANGES: dict[str, Callable[[str, Path], str]] = {
    "an argument": lambda text, marker: text.replace("%X", "%" + _escaped(f"x, *dims[{_payload(marker)}]")),
    "an argument of several lines": lambda text, marker: text.replace("%X", "%" + _escaped(
        f"x = arrays[3]\n    {_payload(marker)}\n    a3_x")),
    "a tile": lambda text, marker: text.replace("%x ", "%" + _escaped(f"x'), {_payload(marker)}, ('") + " "),
    "the function": lambda text, marker: text.replace("@stopped(", f'@"s\\0A    {_payload(marker)}\\0A"('),
    "the function of a stop": lambda text, marker: text.replace(
        'function = "stopped"', f'function = "f(q={_payload(marker)}): pass\\0Adef h"'),
    "a number at a stop": lambda text, marker: re.sub(
        r'(names = "\w+)', lambda found: f"{found[1]}={_payload(marker)}", text),
    "a constant at a stop": lambda text, marker: text.replace("\\22rows\\22", f"\\22rows={_payload(marker)}\\22"),
    "a tensor at a stop": lambda text, marker: text.replace("\\22X\\22", f"\\22X={_payload(marker)}\\22"),
    "a tile at a stop": lambda text, marker: text.replace('called = "x"', f'called = "x={_payload(marker)}"'),
}


@pytest.fixture
def text() -> str:
    return tilelang.jit(_stopped, out_idx=[-1], target="npuir")(16).mlir()


@pytest.mark.parametrize("what", CHANGES)
@pytest.mark.parametrize("command", ["sim", "check"])
def test_what_a_module_calls_things_is_not_executed(
        command: str, what: str, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stops: list[dict[str, Any]] = []
    monkeypatch.setattr(sys, "breakpointhook", lambda: stops.append(dict(sys._getframe(1).f_locals)))
    marker, file = tmp_path / "pwned", tmp_path / "kernel.mlir"
    changed = CHANGES[what](text, marker)
    assert changed != text
    file.write_text(changed)
    assert main([command, str(file)]) == 0, capsys.readouterr().err
    assert not marker.exists()
    if command == "sim":
        assert stops
        assert all(stop.keys() >= {"x"} or "tile at a stop" in what for stop in stops)


def test_names_of_arguments_that_are_identifiers_stay_in_the_generated_code(text: str) -> None:
    source = Program(parse_module(text, "kernel.mlir"), chip("910B2"), entry="stopped").source()
    assert "a3_X = arrays[3]" in source
    assert "a4_Y = arrays[4]" in source
