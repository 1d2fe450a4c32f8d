"""A plug-in package by ``--load``, installed, and under pytest, in every command: its operations, its pass and its chip."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cli.conftest import Done, Tool, tool  # noqa: F401  (a fixture)
from tilelang_npu.cli import COMMANDS
from tilelang_npu.plugins.registry import registrations

needs_toml = pytest.mark.skipif(sys.version_info < (3, 11), reason="TOML is read by Python 3.11 and later")


@pytest.fixture
def loaded(tool: Tool, sample: Path) -> Tool:  # noqa: F811  (the fixture)
    """Runs a command with the plug-in, which is gone after it."""
    def call(*words: object) -> Done:
        done = tool(*words, "--load", sample)
        assert registrations() == ()
        assert "TILELANG_NPU_LOAD" not in os.environ
        return done

    return call


def test_run(loaded: Tool, kernel: Path) -> None:
    done = loaded("run", kernel, "--sanitize", "--against-interpreter")
    assert done.code == 0, done.out + done.err
    assert done.out.startswith("PASS\n")


def test_without_it(tool: Tool, kernel: Path) -> None:  # noqa: F811  (the fixture)
    done = tool("run", kernel)
    assert done.code == 1
    assert "T.load_reversed does not exist" in done.err


@needs_toml
def test_chips(loaded: Tool, kernel: Path) -> None:
    assert "Sample910 " in loaded("chips").out
    done = loaded("run", kernel, "--chip", "sample910")
    assert done.code == 0, done.err
    assert "Sample910, warm L2, modelled" in done.out


def test_check_and_compile(loaded: Tool, kernel: Path, tmp_path: Path) -> None:
    done = loaded("check", kernel)
    assert (done.code, "nothing found" in done.out) == (0, True), done.err
    text = loaded("compile", kernel).out
    assert 'symbol = "sample_softsign"} "softsign"' in text
    assert text.count("hivm.hir.vrelu") == 1
    file = tmp_path / "kernel.mlir"
    file.write_text(text)
    done = loaded("sim", file, "--seed", "1", "--save", tmp_path)
    assert done.code == 0, done.err
    a, b = (np.load(tmp_path / f"{name}.npy") for name in ("A", "B"))
    turned = a[:, ::-1]
    np.testing.assert_allclose(b, np.maximum(np.roll(turned / (1 + np.abs(turned)), 3, -1), 0), rtol=1e-6)


def test_a_text_without_it(tool: Tool, loaded: Tool, kernel: Path, tmp_path: Path) -> None:  # noqa: F811  (the fixture)
    file = tmp_path / "kernel.mlir"
    file.write_text(loaded("compile", kernel).out)
    done = tool("sim", file)
    assert done.code == 1
    assert "no operation has the name 'load_reversed'" in done.err
    assert "--load FILE.py loads a plug-in that adds operations" in done.err


def test_stages_and_opt(loaded: Tool, tool: Tool, kernel: Path, tmp_path: Path) -> None:  # noqa: F811  (the fixture)
    assert "collapse-copies\ndrop-repeated-relu\nfuse-fixpipe\n" in loaded("stages").out
    assert "drop-repeated-relu" not in tool("stages").out
    assert "| drop-repeated-relu | drop-repeated-relu | tile | Removes an in-place relu" in loaded("stages", "--markdown").out
    pipeline = loaded("stages", kernel, "--pipeline").out
    assert "collapse-copies{enabled=true},\ndrop-repeated-relu{enabled=true most=0},\n" in pipeline
    file = tmp_path / "kernel.mlir"
    file.write_text(loaded("compile", kernel, "--stage", "tile").out)
    whole = loaded("opt", file, "-p", pipeline)
    assert whole.out == loaded("compile", kernel).out, whole.err
    for option, left in (("enabled=false", 2), ("most=1", 1)):
        done = loaded("opt", file, "-p", f"drop-repeated-relu{{{option}}}")
        assert done.out.count('"relu"') == left
    assert "there is no pass 'drop-repeated-relu'" in tool("opt", file, "-p", "drop-repeated-relu").err
    assert "      most (an integer): the largest number of operations to remove; 0 for all." in loaded("opt", "--list").out


def test_ops_and_doctor(loaded: Tool) -> None:
    out = loaded("ops", "softsign").out
    assert "softsign tile.softsign vsoftsign npuir_softsign" in out
    out = loaded("doctor").out
    assert "op softsign, op rotate, op load_reversed, pass drop-repeated-relu" in out
    assert "by sample_plugin" in out


def test_survey(loaded: Tool, kernel: Path, tmp_path: Path) -> None:
    """A script, and a pytest file, each in a separate process."""
    folder = tmp_path / "scripts"
    folder.mkdir()
    text = kernel.read_text(encoding="utf-8")
    (folder / "kernel.py").write_text(text.replace("test_softsign", "compared"))
    (folder / "test_kernel.py").write_text(text)
    done = loaded("survey", folder, "--json", tmp_path / "report.json")
    report: Any = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    assert {case["path"]: case["outcome"] for case in report["cases"]} == {
        "kernel.py": "passed", "test_kernel.py::test_softsign": "passed"}, done.out


def test_a_file_that_cannot_be_loaded(tool: Tool, tmp_path: Path) -> None:  # noqa: F811  (the fixture)
    file = tmp_path / "broken.py"
    file.write_text("x = 1 / 0\n")
    done = tool("ops", "--load", file)
    assert done.code == 1
    assert done.err.startswith(f"error[T820]: the plug-in {file} cannot be loaded: ZeroDivisionError: division by zero\n")
    assert f"{file}:1" in done.err


def test_commands_have_the_option(tool: Tool) -> None:  # noqa: F811  (the fixture)
    for command in COMMANDS:
        assert ("--load FILE.py" in tool(command, "--help").out) == (command not in ("new", "completion")), command


# -- installed, and under pytest ---------------------------------------------------------------------------------------


def install(target: Path, source: Path) -> None:
    """Installs the package into a folder as pip does: its files, and its metadata."""
    import shutil

    shutil.copytree(source, target / source.name, ignore=shutil.ignore_patterns("__pycache__"))
    info = target / "sample_plugin-1.2.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: sample-plugin\nVersion: 1.2\n")
    (info / "entry_points.txt").write_text("[tilelang_npu.plugins]\nsample = sample_plugin\n")


def process(python: str, words: list[str], *path: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    source = Path(__file__).resolve().parents[2] / "src"
    return subprocess.run([python, *words], capture_output=True, text=True, check=False, cwd=path[-1], env={
        **os.environ, "PYTHONPATH": os.pathsep.join(map(str, (source, *path[:-1]))), **environment})


@pytest.mark.kept
def test_an_installed_package(python: str, sample: Path, kernel: Path, tmp_path: Path) -> None:
    """It needs no option; its kernels are found in the cache, unless the package has changed."""
    target = tmp_path / "installed"
    target.mkdir()
    install(target, sample)
    run = ["-m", "tilelang_npu", "run", str(kernel), "--json", "out.json"]
    for _ in range(2):
        done = process(python, run, target, tmp_path)
        assert (done.returncode, done.stdout.partition("\n")[0]) == (0, "PASS"), done.stderr
    entries = sorted(Path(os.environ["TILELANG_CACHE_DIR"]).glob("*.run.z"))
    assert len(entries) == 1
    meanings = target / "sample_plugin" / "meanings.py"
    meanings.write_text(meanings.read_text(encoding="utf-8").replace("by, axis", "by + 1, axis"), encoding="utf-8")
    done = process(python, run, target, tmp_path)
    assert "AssertionError" in done.stderr
    assert len(list(Path(os.environ["TILELANG_CACHE_DIR"]).glob("*.kernel.gz"))) == 2


def test_pytest(python: str, sample: Path, kernel: Path, tmp_path: Path) -> None:
    words = ["-m", "pytest", "-q", "-p", "tilelang_npu.pytest_plugin", "-p", "no:cacheprovider", "-c", os.devnull,
             "--rootdir", str(tmp_path), str(kernel)]
    done = process(python, [*words, "--tilelang-load", str(sample), "--tilelang-sanitize"], tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 passed" in done.stdout
    broken = tmp_path / "broken.py"
    broken.write_text("x = 1 / 0\n")
    done = process(python, [*words, "--tilelang-load", str(broken)], tmp_path)
    assert done.returncode == 4
    assert f"the plug-in {broken} cannot be loaded: ZeroDivisionError" in done.stdout + done.stderr


def test_pip_installs_the_entry_point(python: str, sample: Path, tmp_path: Path) -> None:
    """Checks that pip writes the same metadata as the tests above. Like the installation of this
    package, it fetches the build backend from the package index."""
    pytest.importorskip("pip")
    import shutil

    shutil.copytree(sample.parent, tmp_path / "source", ignore=shutil.ignore_patterns("__pycache__"))
    done = subprocess.run(
        [python, "-m", "pip", "install", "--quiet", "--no-deps", "--disable-pip-version-check", "--target",
         str(tmp_path / "target"), str(tmp_path / "source")],
        capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (info,) = (tmp_path / "target").glob("sample_plugin-1.2.dist-info")
    assert "[tilelang_npu.plugins]\nsample = sample_plugin" in (info / "entry_points.txt").read_text(encoding="utf-8")
    assert (tmp_path / "target" / "sample_plugin" / "sample910.toml").is_file()
