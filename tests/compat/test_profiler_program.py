"""The program ``msprof`` on the search path comes and goes with the compatibility layer, and leaves the vendor's alone."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tilelang_npu.compat import profiler_program

pytestmark = pytest.mark.skipif(os.name != "posix", reason="the program is a shell script")


@pytest.fixture(autouse=True)
def path(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The search path without any ``msprof``; another test's layer is put back."""
    installed = bool(profiler_program._folders)
    profiler_program.uninstall()
    before = os.environ["PATH"]
    monkeypatch.setenv("PATH", before)
    assert shutil.which("msprof") is None
    yield before
    profiler_program.uninstall()
    monkeypatch.undo()
    if installed:
        profiler_program.install()


def test_it_is_there_while_it_is_installed(path: str) -> None:
    profiler_program.install()
    found = Path(str(shutil.which("msprof")))
    assert found.parent.stat().st_mode & 0o077 == 0, "nobody else can write to the folder"
    added = os.environ["PATH"]
    profiler_program.install()
    assert os.environ["PATH"] == added
    shown = subprocess.run(["msprof", "op", "python", "nothing.py"], capture_output=True, text=True)
    assert (shown.returncode, "nothing.py does not exist" in shown.stderr) == (1, True)
    profiler_program.uninstall()
    assert os.environ["PATH"] == path and not found.parent.exists()


def test_the_vendors_program_stays_the_first(path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "msprof").write_text("#!/bin/sh\n")
    (tmp_path / "msprof").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{path}")
    profiler_program.install()
    assert shutil.which("msprof") == str(tmp_path / "msprof")


def test_a_forked_process_leaves_the_folder(path: str) -> None:
    program = """
import os, shutil
from tilelang_npu.compat import profiler_program
profiler_program.install()
found = shutil.which("msprof")
child = os.fork()
if child == 0:
    profiler_program.uninstall()
    os._exit(0)
os.waitpid(child, 0)
print(os.path.exists(found), found)
"""
    there, found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    assert there == "True" and not Path(found).exists(), "the process that made it removes it at its end"
