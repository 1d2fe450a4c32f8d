"""``improve``: the command's output and files, its errors, and its exit codes."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tilelang_npu.cli import main

pytest.importorskip("libcst", reason="the extra improve is not installed")

from improve.scripts import DATA_DEPENDENT, SCRIPT
from tilelang_npu.runtime.improve import edit_search
from tilelang_npu.runtime.kernel.draft import Draft, Timing, time_draft


def test_command_runs_the_script_and_writes_a_patch(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, out, patch = tmp_path / "script.py", tmp_path / "faster.py", tmp_path / "faster.patch"
    path.write_text(SCRIPT, encoding="utf-8")
    assert main(["improve", str(path), "--trials", "30", "--write", str(out), "--patch", str(patch), "--explain"]) == 0
    printed = capsys.readouterr().out
    assert "ran" in printed and "times as fast" in printed and "results: equal bit by bit" in printed
    assert main(["run", str(out)]) == 0
    assert patch.read_text(encoding="utf-8").startswith("--- a/script.py")


def test_command_with_the_factorys_arguments(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "script.py"
    path.write_text(SCRIPT, encoding="utf-8")
    assert main(["improve", f"{path}:scaled", "--arg", "rows=960", "columns=64", "tile=1", "--trials", "12"]) == 0
    printed = capsys.readouterr().out
    assert "ran" not in printed and "tile =" not in printed, "what --arg gives stays"


def test_command_with_the_sizes_of_an_eager_function(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "script.py"
    path.write_text('''\
import tilelang
import tilelang.language as T


@tilelang.jit(target="npuir")
def doubled(X, Y, tile=8):
    M = T.const("M")
    X: T.Tensor((M, 64), "float32")
    Y: T.Tensor((M, 64), "float32")
    with T.Kernel(T.ceildiv(M, tile), is_npu=True) as (b, _):
        x = T.alloc_shared((tile, 64), "float32")
        T.copy(X[b * tile, 0], x)
        T.vmul(x, 2.0, x)
        T.copy(x, Y[b * tile, 0])
''', encoding="utf-8")
    assert main(["improve", str(path), "--arg", "M=4096", "--trials", "6"]) == 0
    printed = capsys.readouterr().out
    assert "times as fast" in printed and "in place of 8" in printed and "results: equal bit by bit" in printed


@pytest.mark.parametrize(("words", "code", "text"), [
    (["--arg", "rows=8"], "T810", "needs columns"), (["--arg", "row=8"], "T810", "did you mean rows"),
    ([":absent"], "T803", "runs no kernel 'absent'")])
def test_mistakes(tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], code: str, text: str) -> None:
    path = tmp_path / "script.py"
    path.write_text(SCRIPT, encoding="utf-8")
    name = words.pop(0) if words[0].startswith(":") else ""
    assert main(["improve", f"{path}{name}", *words, "--budget", "1s"]) == 1
    shown = capsys.readouterr().err
    assert f"error[{code}]" in shown and text in shown


@pytest.mark.parametrize("duration", ["0s", "-1", "soon", "3 d"])
def test_durations(duration: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["improve", "script.py", f"--budget={duration}"])
    assert caught.value.code == 2 and "is not a duration" in capsys.readouterr().err


def test_a_time_that_data_decide_is_that_of_the_first_call(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, out = tmp_path / "script.py", tmp_path / "faster.py"
    path.write_text("import numpy as np\nimport tilelang\nimport tilelang.language as T\n" + DATA_DEPENDENT + '''
index, x, y = np.full(8, 3, np.int32), np.ones((8, 64), np.float32), np.zeros(64, np.float32)
chosen(8)(index, x, y)
print(int(y.sum()))
''', encoding="utf-8")
    assert main(["improve", str(path), "--budget", "60s", "--trials", "5", "--write", str(out)]) == 0
    shown = capsys.readouterr()
    assert shown.out.startswith("64\nchosen on Ascend910B2: ") and out.exists()
    assert main(["improve", str(path), "--arg", "n=8", "--budget", "1s"]) == 1
    shown = capsys.readouterr()
    assert shown.err.startswith("error[T421]: the time of chosen depends on the sizes or the elements of a call's arguments")
    assert "Traceback" not in shown.err and "= help: call the kernel in the script" in shown.err


@pytest.mark.usefixtures("interruptible")
def test_ctrl_c_prints_and_writes_the_best_version_so_far(tmp_path: Path, capsys: pytest.CaptureFixture[str],
                                                          monkeypatch: pytest.MonkeyPatch) -> None:
    timed: list[Timing] = []

    def interrupted(draft: Draft, seconds: float, arguments: object = None) -> Timing:
        if len(timed) == 10:
            timed.append(Timing())
            signal.raise_signal(signal.SIGINT)
        timed.append(time_draft(draft, seconds))
        return timed[-1]

    monkeypatch.setattr(edit_search, "time_draft", interrupted)
    path, out = tmp_path / "script.py", tmp_path / "faster.py"
    path.write_text(SCRIPT, encoding="utf-8")
    assert main(["improve", str(path), "--budget", "10min", "--write", str(out)]) == 0
    assert "times as fast" in capsys.readouterr().out
    assert out.read_text(encoding="utf-8") != SCRIPT and main(["run", str(out)]) == 0


def test_the_help_says_what_the_command_does(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["improve", "--help"])
    assert "Search edits of a kernel's source" in " ".join(capsys.readouterr().out.split())
