"""The plugin in a separate pytest: marks that suites do not declare, and files that cannot be imported."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest


def _pytest(folder: Path, root: Path, *options: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join(filter(None, [str(root / "src"), os.environ.get("PYTHONPATH")]))
    words = ["-m", "pytest", "-q", "-p", "tilelang_npu.pytest_plugin", "-p", "no:cacheprovider", *options, str(folder)]
    return subprocess.run([sys.executable, *words], cwd=folder, env={**os.environ, "PYTHONPATH": path}, capture_output=True,
                          text=True, check=False)


def test_smoke_is_declared(tmp_path: Path, root: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = --strict-markers\n")
    (tmp_path / "test_marked.py").write_text(
        "import pytest\nimport tilelang\npytestmark = pytest.mark.smoke\ndef test_it():\n    assert tilelang.jit\n")
    done = _pytest(tmp_path, root)
    assert done.returncode == 0 and "1 passed" in done.stdout
    (tmp_path / "test_marked.py").write_text("import pytest\npytestmark = pytest.mark.smook\ndef test_it(): pass\n")
    assert "'smook' not found" in _pytest(tmp_path, root).stdout


@pytest.mark.parametrize("options", [(), ("-n", "1")], ids=["alone", "workers"])
def test_a_file_that_cannot_be_imported_is_one_error(tmp_path: Path, root: Path, options: tuple[str, ...]) -> None:
    (tmp_path / "test_broken.py").write_text("import no_such_module_at_all\n")
    done = _pytest(tmp_path, root, *options)
    assert "INTERNALERROR" not in done.stdout and "1 error" in done.stdout
