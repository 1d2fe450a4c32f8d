"""The workflow of docs/ci.md: its commands do in a checkout what they are for, as they stand on the page."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from documents.pages import DOCS, blocks

yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
BIN = Path(sys.executable).parent


def steps() -> list[dict[str, Any]]:
    (text,) = (block.text for block in blocks(DOCS / "ci.md") if block.title.startswith(".github/"))
    workflow = yaml.safe_load(text)
    (job,) = workflow["jobs"].values()
    found: list[dict[str, Any]] = job["steps"]
    return found


def git(where: Path, *words: str) -> None:
    subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@example.org", *words], cwd=where, check=True,
                   capture_output=True)


def test_every_step_is_a_known_action_or_commands() -> None:
    for step in steps():
        assert ("uses" in step) != ("run" in step)
        assert "run" not in step or step["name"]
        assert step.get("uses", "actions/@").startswith("actions/")


@pytest.mark.skipif(os.name != "posix" or shutil.which("git") is None or not (BIN / "tilelang-npu").exists()
                    or not (BIN / "pytest").exists(), reason="needs bash, git and the installed commands")
def test_the_commands_check_test_and_compare(tmp_path: Path, root: Path) -> None:
    checkout, temporary = tmp_path / "checkout", tmp_path / "temporary"
    for folder in (checkout, temporary):
        folder.mkdir()
    for block in blocks(DOCS / "ci.md"):
        if block.title in ("test_kernels.py", "script.py"):
            (checkout / block.title).write_text(block.text)
    git(tmp_path, "init", "-q", "--bare", "origin")
    git(checkout, "init", "-q", "-b", "main")
    git(checkout, "add", "-A")
    git(checkout, "commit", "-qm", "base")
    git(checkout, "remote", "add", "origin", str(tmp_path / "origin"))
    git(checkout, "push", "-q", "origin", "main")
    kernels = checkout / "test_kernels.py"
    slower = kernels.read_text().replace("T.vadd(x, x, x)", "T.vadd(x, x, x)\n            for _ in T.serial(200):\n"
                                                            "                T.vabs(x, x)")
    kernels.write_text(slower)
    (checkout / "base.json").write_text("{}")  # of an earlier run in the same folder: pytest must not take it for a test's path
    variables = temporary / "env"
    variables.touch()
    env = {**os.environ, "PATH": os.pathsep.join([str(BIN), os.environ["PATH"]]), "GITHUB_WORKSPACE": str(checkout),
           "RUNNER_TEMP": str(temporary), "GITHUB_ENV": str(variables), "GITHUB_BASE_REF": "main", "CACHE_SECRET": 64 * "a",
           "GITHUB_STEP_SUMMARY": str(temporary / "summary"), "PYTHONDONTWRITEBYTECODE": "1",
           "PYTHONPATH": os.pathsep.join(filter(None, [str(root / "src"), os.environ.get("PYTHONPATH")])),
           "TILELANG_CACHE_DIR": str(checkout / ".kernel-cache"), "TILELANG_DISABLE_CACHE": "0"}
    codes = {}
    for step in steps():
        if "run" in step and step["name"] != "Install":
            words = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
            done = subprocess.run(words, cwd=checkout, env=env, capture_output=True, text=True, check=False)
            codes[step["name"]] = done.returncode
            assert done.returncode < 2, done.stdout + done.stderr
            env |= dict(line.split("=", 1) for line in variables.read_text().splitlines())
    assert codes == {"Write the secret of the kernel cache": 0, "Check the kernels": 0, "Run the tests": 0,
                     "Compare the times": 1}
    assert (temporary / "tilelang" / "cache.key").stat().st_mode & 0o777 == 0o600
    assert any((checkout / ".kernel-cache").rglob("*.run.z"))  # signed with the secret
    assert "1 slower" in (temporary / "summary").read_text()
    for name in ("findings.sarif", "report.xml", "times.html"):
        assert (checkout / name).stat().st_size, name
