"""A module from a file is data: no name or text in it becomes a part of the code that is generated for it."""

from __future__ import annotations

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


def _exponential(rows: int) -> Any:
    @T.prim_func
    def exponential(X: T.Tensor((rows, 64), "float32"), Y: T.Tensor((rows, 64), "float32")):  # type: ignore[no-untyped-def]
        with T.Kernel(1, is_npu=True) as (_, half):
            x = T.alloc_shared((rows, 64), "float32")
            T.copy(X, x)
            T.vexp(x, x)
            T.copy(x, Y)

    return exponential


def _escaped(text: str) -> str:
    """Returns a name of the IR that encodes any text, see ``dialects/text/names.py``."""
    return "".join(one if one.isalnum() or one == "_" else f"${ord(one):x}." for one in text)


def _payload(marker: Path) -> str:
    return f"__import__('os').mkdir('{marker}')"


CHANGES: dict[str, Callable[[str, Path], str]] = {
    "an argument": lambda text, marker: text.replace("%X", "%" + _escaped(f"x, *dims[{_payload(marker)}]")),
    "an argument of several lines": lambda text, marker: text.replace("%X", "%" + _escaped(
        f"x = arrays[3]\n    {_payload(marker)}\n    a3_x")),
    "a tile": lambda text, marker: text.replace("%x ", "%" + _escaped(f"x'), {_payload(marker)}, ('") + " "),
    "the function": lambda text, marker: text.replace("@exponential(", f'@"s\\0A    {_payload(marker)}\\0A"('),
}


@pytest.fixture
def text() -> str:
    return tilelang.jit(_exponential, out_idx=[-1], target="npuir")(16).mlir()


@pytest.mark.parametrize("what", CHANGES)
@pytest.mark.parametrize("command", ["sim", "check"])
def test_what_a_module_calls_things_is_not_executed(
        command: str, what: str, text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    marker, file = tmp_path / "pwned", tmp_path / "kernel.mlir"
    changed = CHANGES[what](text, marker)
    assert changed != text
    file.write_text(changed)
    assert main([command, str(file)]) == 0, capsys.readouterr().err
    assert not marker.exists()


def test_names_of_arguments_that_are_identifiers_stay_in_the_generated_code(text: str) -> None:
    source = Program(parse_module(text, "kernel.mlir"), chip("910B2"), entry="exponential").source()
    assert "a3_X = arrays[3]" in source
    assert "a4_Y = arrays[4]" in source
