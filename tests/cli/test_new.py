"""``new``: the generated kernel runs, and passes its test and its check; no file is overwritten."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tilelang_npu.cli import main


def test_the_kernel_runs_and_its_own_test_and_check_pass(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["new", "row_scale", "--dir", str(tmp_path / "kernels")]) == 0
    written = {tmp_path / "kernels" / name for name in ("row_scale.py", "test_row_scale.py")}
    assert set((tmp_path / "kernels").iterdir()) == written
    output = capsys.readouterr().out.splitlines()
    assert {Path(line) for line in output[:2]} == written
    assert output[-2:] == [f"tilelang-npu run {tmp_path}/kernels/row_scale.py", f"pytest {tmp_path}/kernels/test_row_scale.py"]
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path / "kernels")],
                          capture_output=True, text=True, timeout=300, check=False, cwd=tmp_path)
    assert "4 passed" in done.stdout, done.stdout + done.stderr


def test_what_is_there_stays(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "test_mine.py").write_text("kept")
    assert main(["new", "mine", "--dir", str(tmp_path)]) != 0
    assert "error[T801]" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["test_mine.py"]
    assert (tmp_path / "test_mine.py").read_text() == "kept"


@pytest.mark.parametrize("name", ["2d", "for", "a-b", ""])
def test_a_name_that_python_does_not_take_is_refused(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["new", name, "--dir", str(tmp_path)]) != 0
    assert "error[T417]" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
