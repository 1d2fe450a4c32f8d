"""The worked examples of CONTRIBUTING.md: each diff is applied to a copy exactly as printed, its commands run, the new feature
works, and no file that the page does not name has changed."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from filecmp import cmp
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PARTS = ("src", "tests", "docs", "examples", "pyproject.toml", "README.md", "CONTRIBUTING.md", "CHANGELOG.md")
EXAMPLES = ("An op", "A pass", "A chip", "A cost")
NEVER = ("__pycache__", ".pytest_cache", ".hypothesis")


@dataclass(frozen=True)
class WorkedExample:
    """A section of the page: its diff, its commands, and the files that both name."""

    diff: str
    commands: str
    files: frozenset[str]


def worked_example(title: str) -> WorkedExample:
    """Returns the worked example with a title."""
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    (section,) = re.findall(rf"^### {title}\n(.*?)(?=^##|\Z)", page, re.MULTILINE | re.DOTALL)
    (diff,) = re.findall(r"^```diff\n(.*?)^```", section, re.MULTILINE | re.DOTALL)
    (commands,) = re.findall(r"^```sh\n(.*?)^```", section, re.MULTILINE | re.DOTALL)
    files = {*re.findall(r"^\+\+\+ b/(\S+)", diff, re.MULTILINE), *re.findall(r"(?:> |# writes )((?:docs|src)/\S+)", commands)}
    return WorkedExample(diff, commands, frozenset(files))


class Copy:
    """A copy of the repository, in which commands run as in a shell after ``pip install -e``."""

    def __init__(self, place: Path) -> None:
        self.place, programs = place / "copy", place / "bin"
        self.place.mkdir()
        for part in PARTS:
            if (ROOT / part).is_dir():
                shutil.copytree(ROOT / part, self.place / part, ignore=shutil.ignore_patterns(*NEVER[1:]))
            else:
                shutil.copy2(ROOT / part, self.place / part)
        programs.mkdir()
        for name, words in {"python": "", "pytest": "-m pytest", "tilelang-npu": "-m tilelang_npu"}.items():
            (programs / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {words} "$@"\n')
            (programs / name).chmod(0o755)
        self.environment = {**os.environ, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
                            "PYTHONPATH": os.pathsep.join([str(self.place / "src"), str(self.place / "tests")]),
                            "TILELANG_CACHE_DIR": str(place / "kernels"), "GIT_CEILING_DIRECTORIES": str(place),
                            "PYTEST_ADDOPTS": "-q -p no:cacheprovider"}

    def apply(self, diff: str) -> None:
        """Apply a diff."""
        subprocess.run(["git", "apply", "--whitespace=error", "-"], input=diff, text=True, check=True, cwd=self.place,
                       env=self.environment)

    def run(self, commands: str) -> str:
        """Runs commands, which have to succeed, and returns their output."""
        done = subprocess.run(["sh", "-ec", commands], cwd=self.place, env=self.environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def python(self, program: str) -> str:
        """Runs a Python program and returns its output."""
        return self.run(f"python - <<'END'\n{program}\nEND\n").strip()

    def changed(self) -> set[str]:
        """Returns the files that differ from the repository."""
        def files(root: Path) -> set[str]:
            found = (file for part in PARTS for file in (root / part, *(root / part).rglob("*")))
            return {str(file.relative_to(root)) for file in found if file.is_file() and not set(file.parts) & set(NEVER)}

        here, there = files(self.place), files(ROOT)
        return here ^ there | {file for file in here & there if not cmp(self.place / file, ROOT / file, shallow=False)}


@pytest.fixture
def copy(tmp_path: Path) -> Copy:
    """A copy of the repository without the worked examples."""
    return Copy(tmp_path)


def check_example(copy: Copy, title: str) -> None:
    """Checks that the diff applies, the commands succeed and run tests, and the page names every file that differs."""
    one = worked_example(title)
    copy.apply(one.diff)
    output = copy.run(one.commands)
    assert re.search(r"\d+ passed", output), output
    assert copy.changed() == one.files


KERNEL = """
@tilelang.jit(target="{target}", pass_configs={{"tl.ascend_auto_sync": True}})
def factory():
    @T.prim_func
    def main(X: T.Tensor((64,), "float32"), Y: T.Tensor((64,), "float32")):
        with T.Kernel(1, is_npu=True) as (block, _):
            x = T.alloc_ub((64,), "float32")
            y = T.alloc_ub((64,), "float32")
            T.copy(X, x)
            {call}
            T.copy(y, Y)
    return main

X = np.linspace(-9, 9, 64, dtype=np.float32)
Y = np.zeros(64, np.float32)
factory()(X, Y)
print([float(number) for number in Y] == [float(min(max(number, 0), 6)) for number in X])
"""
CALLS = {"T.vrelu6(x, y)": "npuir", "T.npuir_relu6(x, y)": "npuir", "T.tile.relu6(y, x)": "ascendc"}


def test_an_op_is_an_entry_and_a_line_of_test(copy: Copy) -> None:
    check_example(copy, "An op")
    assert len([line for line in worked_example("An op").diff.splitlines() if re.match(r"\+[^+]", line)]) == 5
    head = "import numpy as np\nimport tilelang_npu as tilelang\nimport tilelang_npu.language as T\n"
    kernels = "".join(KERNEL.format(target=target, call=call) for call, target in CALLS.items())
    (copy.place.parent / "kernels.py").write_text(head + kernels)
    assert copy.run("python ../kernels.py").split() == ["True"] * len(CALLS)
    (row,) = copy.run("tilelang-npu ops relu6").splitlines()[1:]
    assert row.split()[-3:] == ["tile.relu6", "vrelu6", "npuir_relu6"]


def test_a_pass_is_a_file_a_row_and_its_test(copy: Copy) -> None:
    check_example(copy, "A pass")
    stages = copy.run("tilelang-npu stages").split()
    assert stages[stages.index("merge-barriers") - 1] == "insert-sync"
    both = "func.func @k() {\n" + 2 * "  hivm.hir.pipe_barrier[<PIPE_ALL>]\n" + "  return\n}\n"
    (copy.place.parent / "twice.mlir").write_text(both)
    assert copy.run("tilelang-npu opt ../twice.mlir -p merge-barriers").count("pipe_barrier") == 1
    assert copy.run("tilelang-npu opt ../twice.mlir -p tidy").count("pipe_barrier") == 2


CHIP = """
from simulator.test_operand_checks import _module
from tilelang_npu.cli import main
from tilelang_npu.dialects.text import parse_module
from tilelang_npu.errors import TileError
from tilelang_npu.simulator import Program
from tilelang_npu.target import chip
for name in ("910_95", "950PR_9599"):
    assert main(["run", "examples/gemm.py", "--chip", name]) == 0
    text = _module("AIC", "load", ("gm", "ca")).replace("Ascend910B2", chip(name).hivm_target)
    try:
        Program(parse_module(text), chip(name))
    except TileError as error:
        print("L0A:", error.message)
    else:
        print("L0A: loaded")
"""


def test_a_chip_with_a_path_more_is_an_entry(copy: Copy) -> None:
    check_example(copy, "A chip")
    assert "Ascend950PR_9599" in copy.run("tilelang-npu chips")
    output = copy.python(CHIP)
    assert output.count("PASS") == 2
    with_less, with_more = [[float(time) for time in re.findall(r"time +([\d.]+) us", half)]
                            for half in output.split("L0A:")[:2]]
    assert all(more > less for less, more in zip(with_less, with_more, strict=True))  # by its own row of GM to L1
    refused, loads = re.findall("^L0A: (.*)$", output, re.MULTILINE)
    assert refused.startswith("Ascend910_95 has no path from GM to L0A")
    assert loads == "loaded"


COST = """
from simulator import texts
from simulator.test_times import lone
wide = f"memref<64x64xf32, {texts.UB}>"
body = [texts.tile("a", 0, "64x64", "f32"), texts.tile("c", 16384, "64x64", "f32"),
        f"    hivm.hir.vlog10 ins(%a : {wide}) outs(%c : {wide})"]
print(*(lone(body, [], [], name=name).cycles for name in ("910B2", "910_9382", "910_95")))
"""


def test_a_cost_is_a_row_and_who_names_it(copy: Copy) -> None:
    before = [float(number) for number in copy.python(COST).split()]
    check_example(copy, "A cost")
    after = [float(number) for number in copy.python(COST).split()]
    assert [new > 1.5 * old for old, new in zip(before, after, strict=True)] == [True] * 3


def test_every_example_of_the_page_is_tested() -> None:
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert tuple(re.findall(r"^### (.*)$", page, re.MULTILINE)) == EXAMPLES
    assert page.count("```diff") == len(EXAMPLES)
