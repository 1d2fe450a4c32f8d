"""Completion, asked of the shells themselves: commands, options, values of options, files."""

from __future__ import annotations

import os
import select
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tilelang_npu import target
from tilelang_npu.cli import main

CASES = [
    ("surv", {"survey"}), ("comp", {"compile", "completion"}), ("run --sch", {"--schedule"}), ("completion f", {"fish"}),
    ("run --chip Ascend910B4", {chip.name for chip in target.chips() if chip.name.startswith("Ascend910B4")}),
    ("compile gem", {"gemm.mlir", "gemm.py"})]
"""The typed text after the program's name, and its possible completions."""


@pytest.fixture
def script(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[[str], Path]:
    """Writes the output of ``completion`` for a shell to a file, in a folder with two other files."""
    for name in ("gemm.py", "gemm.mlir"):
        (tmp_path / name).write_text("")

    def write(shell: str) -> Path:
        assert main(["completion", shell]) == 0
        file = tmp_path / f"script.{shell}"
        file.write_text(capsys.readouterr().out, encoding="utf-8")
        return file

    return write


def has(shell: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(shutil.which(shell) is None, reason=f"{shell} is not installed (apt-get install {shell})")


@has("bash")
@pytest.mark.parametrize(("typed", "expected"), CASES)
def test_bash(script: Callable[[str], Path], typed: str, expected: set[str]) -> None:
    file = script("bash")
    words = ["tilelang-npu", *typed.split()]
    ask = (f"source {file}; COMP_WORDS=({' '.join(words)}); COMP_CWORD={len(words) - 1}; _tilelang_npu; "
           'printf "%s\\n" "${COMPREPLY[@]}"')
    done = subprocess.run(["bash", "-c", ask], cwd=file.parent, capture_output=True, text=True, timeout=60, check=True)
    assert set(done.stdout.split()) == expected


@has("fish")
@pytest.mark.parametrize(("typed", "expected"), CASES)
def test_fish(script: Callable[[str], Path], typed: str, expected: set[str]) -> None:
    file = script("fish")
    done = subprocess.run(["fish", "--no-config", "-c", f"source {file}; complete -C 'tilelang-npu {typed}'"], cwd=file.parent,
                          capture_output=True, text=True, timeout=60, check=True, env={**os.environ, "HOME": str(file.parent)})
    assert {line.partition("\t")[0] for line in done.stdout.splitlines()} == expected


@has("zsh")
@pytest.mark.parametrize("prepared", ["", "autoload -U compinit && compinit -u -D; "], ids=["plain", "with compinit"])
def test_zsh(script: Callable[[str], Path], prepared: str) -> None:
    """Text and a tab are typed into an interactive shell, with and without the user's own set-up of completion."""
    import pty

    file = script("zsh")
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(file.parent)
        os.execvpe("zsh", ["zsh", "-f", "-i"], {**os.environ, "TERM": "dumb", "PS1": "> ", "HOME": str(file.parent)})
    seen = b""

    def until(mark: bytes, seconds: float = 20) -> bool:
        nonlocal seen
        end = time.monotonic() + seconds
        while mark not in seen and time.monotonic() < end:
            if select.select([terminal], [], [], 0.1)[0]:
                seen += os.read(terminal, 65536)
        return mark in seen

    try:
        os.write(terminal, f"{prepared}source {file}; echo rea''dy\n".encode())
        assert until(b"ready"), seen
        for typed, expected in CASES:
            seen = b""
            os.write(terminal, b"\x15" + f"tilelang-npu {typed}\t\t".encode())  # ^U deletes the line first
            whole = [one.encode() for one in expected]
            assert all(map(until, whole)), (typed, seen)
            assert b"command not found" not in seen
    finally:
        os.close(terminal)
        os.waitpid(child, 0)
