"""The check for an editor: JSON objects on standard output, whatever the script prints, and an object for each mistake."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

RACE = """\
import numpy as np
import tilelang_npu as tilelang
import tilelang_npu.language as T

@tilelang.jit(out_idx=[-1], target="ascendc")
def factory():
    @T.prim_func
    def main(X: T.Tensor((64,), "float32"), Y: T.Tensor((64,), "float32")):
        with T.Kernel(1, is_npu=True) as (_, half):
            x = T.alloc_ub((64,), "float32")
            if half == 0:
                T.copy(X, x)
                T.tile.exp(x, x)
                T.copy(x, Y)
    return main

print("printed by the script")
factory()(np.zeros(64, np.float32))
"""
ORDERED = RACE.replace('target="ascendc")', 'target="ascendc", pass_configs={"tl.ascend_auto_sync": True})')


def checked(tmp_path: Path, text: str) -> tuple[dict[str, list[dict[str, Any]]], str]:
    """Returns the objects of a check by their kind, and what the check printed to standard error."""
    file = tmp_path / "script.py"
    file.write_text(text, encoding="utf-8")
    done = subprocess.run([sys.executable, "-m", "tilelang_npu.cli.editor_check", str(file)], capture_output=True, text=True,
                          check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    objects = [json.loads(line) for line in done.stdout.splitlines()]
    return {one["kind"]: one[one["kind"]] for one in objects}, done.stderr


def test_a_race_has_its_line_and_its_fix(tmp_path: Path) -> None:
    found, printed = checked(tmp_path, RACE)
    races = [one for one in found["diagnostics"] if one["code"] == "S201"]
    assert [(one["line"], one["severity"]) for one in races] == [(13, "error"), (14, "error")]
    assert [one["fix"].startswith("add an event ") for one in races] == [True, True]
    assert [row["line"] for row in races[0]["related"]] == [12]
    assert all(Path(one["file"]) == tmp_path / "script.py" for one in races)
    assert "printed by the script" in printed


def test_a_kernel_without_findings(tmp_path: Path) -> None:
    found, _ = checked(tmp_path, ORDERED)
    assert found["diagnostics"] == []
    (kernel,) = found["kernels"]
    assert (kernel["name"], Path(kernel["file"])) == ("main", tmp_path / "script.py")
    assert " us +- " in kernel["text"]
    assert isinstance(found["edits"], list)


@pytest.mark.parametrize(("text", "line", "severity", "code", "message"), [
    ("def (\n", 1, "error", "python", "SyntaxError: invalid syntax"),
    (ORDERED + "raise ValueError('wrong size')\n", 19, "error", "python", "ValueError: wrong size\nA check computes no values"),
    (ORDERED.replace("T.tile.exp(x, x)", "T.tile.expp(x, x)"), 13, "error", "T140", "T.tile.expp"),
    ("x = 1\n", 1, "information", "T803", "compiles no kernel"),
])
def test_mistakes(tmp_path: Path, text: str, line: int, severity: str, code: str, message: str) -> None:
    found, _ = checked(tmp_path, text)
    (one,) = found["diagnostics"]
    assert (one["line"], one["severity"], one["code"]) == (line, severity, code), one
    assert message in one["message"]
