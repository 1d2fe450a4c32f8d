"""Improved scripts compute the same and are never slower, and wrong edits are found out."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T
from tilelang_npu import TileError
from tilelang_npu.cli import main
from tilelang_npu.runtime.improve.script_version import ScriptVersion, program_of

pytest.importorskip("libcst", reason="the extra improve is not installed")

from tilelang_npu.runtime.improve.improvement import Improver
from tilelang_npu.runtime.improve.verification import ResultComparison, Verdict


def program(text: str, factory: str, **kwargs: object) -> ScriptVersion:
    names: dict[str, Any] = {"tilelang": tilelang, "T": T, "__name__": "script"}
    return ScriptVersion(textwrap.dedent(text), Path("script.py"), factory, names, (), kwargs)


ROWS = '''
@tilelang.jit(target="npuir")
def scaled(rows, columns, tile=1):
    @T.prim_func
    def scaled(X: T.Tensor((rows, columns), "float32"), Y: T.Tensor((rows, columns), "float32")):
        with T.Kernel(48, is_npu=True) as (core, _):
            x = T.alloc_shared((tile, columns), "float32")
            for i in T.serial(T.ceildiv(rows, tile * 48)):
                T.copy(X[(i * 48 + core) * tile, 0], x)
                for r, c in T.Parallel(tile, columns):
                    x[r, c] = x[r, c] * 2 + 1  # in place
                T.copy(x, Y[(i * 48 + core) * tile, 0])

    return scaled
'''


def test_a_plain_loop_becomes_fast_and_computes_the_same() -> None:
    made = program(ROWS, "scaled", rows=3000, columns=200)
    found = Improver(made).run(60, trials=40)
    assert found.verdict is Verdict.EQUAL
    assert found.after < 0.75 * found.before and found.after == made_time(found.improved, rows=3000, columns=200)
    assert [change.line for change in found.changes]
    assert all(change.after is None or change.after <= change.before * 1.0001 for change in found.changes)
    assert "# in place" in found.improved and found.patch.startswith("--- a/script.py\n+++ b/script.py\n")
    x = np.random.default_rng(1).standard_normal((3000, 200)).astype(np.float32)
    y = np.zeros_like(x)
    program(found.improved, "scaled", rows=3000, columns=200).kernel()(x, y)
    np.testing.assert_array_equal(y, x * 2 + 1)


def made_time(text: str, **kwargs: int) -> float:
    return float(program(text, "scaled", **kwargs).kernel().estimate().time_us)


def test_an_edit_that_changes_results_is_not_made() -> None:
    """The tile is added up, so that another tile gives another result."""
    text = '''
        @tilelang.jit(target="npuir")
        def sums(rows, tile=64):
            @T.prim_func
            def sums(X: T.Tensor((rows,), "float32"), Y: T.Tensor((64,), "float32")):
                with T.Kernel(1, is_npu=True) as (_, _):
                    x = T.alloc_shared((tile,), "float32")
                    y = T.alloc_shared((64,), "float32")
                    T.fill(y, 0)
                    for i in T.serial(rows // 64):
                        T.copy(X[i * 64], x)
                        for j in T.Parallel(64):
                            y[j] = y[j] + x[j] * tile
                    T.copy(y, Y)

            return sums
    '''
    found = Improver(program(text, "sums", rows=4096)).run(60, trials=40)
    assert "tile=64" in found.improved
    assert not any("tile" in change.what for change in found.changes)


def test_blocks_that_race_are_not_made() -> None:
    text = '''
        @tilelang.jit(target="npuir")
        def counted(n):
            @T.prim_func
            def counted(X: T.Tensor((n, 64), "int32"), Y: T.Tensor((64,), "int32")):
                with T.Kernel(1, is_npu=True) as (_, _):
                    x = T.alloc_shared((64,), "int32")
                    y = T.alloc_shared((64,), "int32")
                    for i in T.serial(n):
                        T.copy(X[i, 0], x)
                        T.copy(Y, y)
                        T.vadd(x, y, y)
                        T.copy(y, Y)

            return counted
    '''
    found = Improver(program(text, "counted", n=96)).run(60, trials=40)
    assert not any("blocks" in change.what for change in found.changes)
    assert any("a hazard" in note or "different results" in note for note in found.refused), found


def test_rounding_is_changed_only_if_asked_for() -> None:
    text = '''
        @tilelang.jit(target="npuir")
        def total(n, part=16):
            @T.prim_func
            def total(X: T.Tensor((n, 8), "float32"), Y: T.Tensor((8, 1), "float32")):
                with T.Kernel(1, is_npu=True) as (_, _):
                    x = T.alloc_shared((8, part), "float32")
                    y = T.alloc_shared((8, 1), "float32")
                    s = T.alloc_shared((8, 1), "float32")
                    T.fill(y, 0)
                    for i in T.serial(n // part):
                        for r in T.serial(8):
                            for c in T.Parallel(part):
                                x[r, c] = i * part + c + 0.1 * r
                        T.reduce_sum(x, s, dim=-1)
                        T.vadd(y, s, y)
                    T.copy(y, Y)

            return total
    '''
    made = program(text, "total", n=512)
    check = ResultComparison(made.kernel())
    other = program(text.replace("part=16", "part=64"), "total", n=512).kernel()
    assert check.verdict(other)[0] is Verdict.ROUNDED
    bitwise = Improver(made).run(60, trials=40)
    assert bitwise.verdict is Verdict.EQUAL
    rounded = Improver(made, reassociate=True).run(60, trials=40)
    assert rounded.after <= bitwise.after


def test_a_second_search_makes_nothing_slower() -> None:
    once = Improver(program(ROWS, "scaled", rows=3000, columns=200)).run(60, trials=40)
    again = Improver(program(once.improved, "scaled", rows=3000, columns=200)).run(60, trials=40)
    assert again.before == once.after and 0.9 * once.after <= again.after <= once.after


SCRIPT = '''\
import numpy as np
import tilelang
import tilelang.language as T

{rows}

if __name__ == "__main__":
    x = np.ones((3000, 200), np.float32)
    y = np.zeros_like(x)
    scaled(3000, 200)(x, y)
    assert (y == 3).all()
    print("ran")
'''.replace("{rows}", ROWS)


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


def test_times_that_data_decide_are_refused() -> None:
    text = '''
        @tilelang.jit(target="npuir")
        def chosen(n):
            @T.prim_func
            def chosen(I: T.Tensor((n,), "int32"), X: T.Tensor((n, 64), "float32"), Y: T.Tensor((64,), "float32")):
                with T.Kernel(1, is_npu=True) as (_, _):
                    x = T.alloc_shared((64,), "float32")
                    for i in T.serial(I[0]):
                        T.copy(X[i, 0], x)
                        T.copy(x, Y)

            return chosen
    '''
    with pytest.raises(TileError) as caught:
        Improver(program(text, "chosen", n=8)).run(1)
    assert caught.value.code == "T421"


@tilelang.jit(target="npuir")
def copied(n: int, tile: int = 64) -> Any:
    @T.prim_func
    def copied(X: T.Tensor((n,), "float32"), Y: T.Tensor((n,), "float32")):
        with T.Kernel(T.ceildiv(n, tile), is_npu=True) as (block, _):
            x = T.alloc_shared((tile,), "float32")
            T.copy(X[block * tile], x)
            T.copy(x, Y[block * tile])

    return copied


def test_method_of_a_kernel() -> None:
    kernel = copied(20_000)
    found = kernel.improve(np.ones(20_000, np.float32), np.zeros(20_000, np.float32), trials=24)
    assert found.after < 0.6 * found.before, found
    assert program_of(kernel).factory == "copied"


def test_a_kernel_without_a_factory_says_so() -> None:
    def local() -> Any:
        @tilelang.jit(target="npuir")
        def made(n: int) -> Any:
            return copied.function(n)

        return made

    with pytest.raises(TileError) as caught:
        local()(64).improve(budget=1)
    assert caught.value.code == "T810"
