"""Improved scripts compute the same and are never slower, and wrong edits are found out."""

from __future__ import annotations

import re
import signal
import time
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T
from tilelang_npu import TileError

pytest.importorskip("libcst", reason="the extra improve is not installed")

from improve.scripts import DATA_DEPENDENT, ROWS, program
from tilelang_npu.runtime.checks.result_comparison import Verdict
from tilelang_npu.runtime.improve import edit_search, verification
from tilelang_npu.runtime.improve.edit_search import EditSearch, TriedVersion
from tilelang_npu.runtime.improve.improvement import Improver
from tilelang_npu.runtime.improve.verification import ResultComparison
from tilelang_npu.runtime.kernel.draft import Draft, Timing, time_draft
from tilelang_npu.runtime.kernel.executors import open_executor


def test_a_plain_loop_becomes_fast_and_computes_the_same() -> None:
    made = program(ROWS, "scaled", rows=3000, columns=200)
    found = Improver(made).run(300, trials=40)
    assert found.verdict is Verdict.EQUAL
    assert found.after < 0.75 * found.before and found.after == made_time(found.improved, rows=3000, columns=200)
    assert [change.line for change in found.changes]
    assert all(change.after is not None and change.after <= change.before * 0.98 for change in found.changes)
    assert all(re.match(r"The [a-z -]+ shrinks most: \d+\.\d us become \d+\.\d", change.why) for change in found.changes)
    assert found.roof_after == pytest.approx(found.roof_before * found.before / found.after) and found.roof_after <= 1
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


def test_versions_are_tried_even_if_runs_take_longer_than_the_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    run = verification._run

    def slow(*args: Any) -> Any:
        time.sleep(4)
        return run(*args)

    monkeypatch.setattr(verification, "_run", slow)
    found = Improver(program(ROWS, "scaled", rows=3000, columns=200)).run(4)
    assert found.tried and found.changes, found
    assert re.search(r"^the budget of 4 s was exceeded: a run of the kernel, .* takes \d+ s, and two runs are needed$",
                     str(found), re.MULTILINE)


def test_alternatives_compute_the_same() -> None:
    """A factor of the computation has no effect on the time, so that all of its values are close to the best version."""
    text = ROWS.replace("tile=1", "tile=8, factor=2").replace("* 2 + 1", "* factor + 1")
    improver = Improver(program(text, "scaled", rows=960, columns=64))
    found = improver.run(60, trials=8)
    timed = [one for one in improver._search.versions if "factor" in one.choice]
    assert timed and found.changes, "versions with other factors were timed"
    assert "factor=2" in found.improved
    assert not any("factor" in words for _, words in found.alternatives), found
    for us, _ in found.alternatives:
        assert us <= 1.02 * found.after


def with_times(times: Mapping[str, float | None]) -> Improver:
    """An improver whose versions have given times; the key of a version are the first letters of its edits."""
    def time_of(choice: Mapping[str, int], until: float) -> float | None:
        return times["".join(sorted(choice))]

    improver = Improver.__new__(Improver)
    improver._end = 0.0
    improver._search = cast("EditSearch", SimpleNamespace(time_of=time_of, versions=[TriedVersion({}, times[""])]))
    return improver


@pytest.mark.parametrize(("times", "kept"), [
    ({"": 20.0, "a": 19.0, "b": 18.5, "ab": 17.0}, "ab"),
    ({"": 20.0, "a": 18.2, "b": 18.1, "ab": 18.0}, "b"),
    ({"": 20.0, "a": 19.8, "b": 19.9, "ab": 19.7}, ""),
    ({"": 20.0, "a": 18.2, "b": 22.0, "c": 21.0, "ab": 20.8, "ac": 18.5, "bc": 19.0, "abc": 17.95}, "a"),
    ({"": 20.0, "a": None, "b": 20.0, "ab": 15.0}, "ab"),
])
def test_edits_that_save_less_than_2_percent_alone_or_two_together_are_left_out(times: Mapping[str, float | None], kept: str
                                                                                ) -> None:
    every = max(times, key=len)
    improver = with_times(times)
    assert "".join(sorted(improver._without_idle(TriedVersion(dict.fromkeys(every, 1), times[every])))) == kept


@pytest.mark.parametrize(("times", "rows"), [
    ({"": 20.0, "a": 19.0, "b": 18.5, "ab": 17.0}, [("b", 20.0, 18.5), ("a", 18.5, 17.0)]),
    ({"": 20.0, "a": 20.8, "b": 21.0, "ab": 17.9}, [("ab", 20.0, 17.9)]),
    ({"": 20.0, "a": 18.2, "b": None, "c": 21.0, "ab": None, "ac": 20.8, "abc": 17.5}, [("a", 20.0, 18.2), ("cb", 18.2, 17.5)]),
    ({"": 20.0, "a": 18.0, "b": 19.0, "ab": 17.9}, [("a", 20.0, 18.0), ("b", 18.0, 17.9)]),
])
def test_each_row_saves_2_percent_but_possibly_the_last(times: Mapping[str, float | None],
                                                        rows: list[tuple[str, float, float]]) -> None:
    found = with_times(times)._rows(dict.fromkeys(max(times, key=len), 1), 20.0)
    assert [("".join(row.edits), row.before, row.after) for row in found] == rows


def test_a_script_with_a_hazard_is_refused() -> None:
    text = '''
        @tilelang.jit(target="npuir")
        def counted(n):
            @T.prim_func
            def counted(X: T.Tensor((n, 64), "int32"), Y: T.Tensor((64,), "int32")):
                with T.Kernel(2, is_npu=True) as (block, _):
                    x = T.alloc_shared((64,), "int32")
                    T.copy(X[block, 0], x)
                    T.copy(x, Y)

            return counted
    '''
    with pytest.raises(TileError, match="the script as it is has a hazard at line 9, so no version of it is acc") as caught:
        Improver(program(text, "counted", n=8)).run(60)
    assert caught.value.code == "S203"
    assert caught.value.location is not None and caught.value.location.file == "script.py"
    assert "repair it first" in (caught.value.help or "")


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


def test_times_that_data_decide_are_refused_without_arguments() -> None:
    with pytest.raises(TileError, match="the time of chosen depends on the sizes or the elements of a call's arg") as caught:
        Improver(program(DATA_DEPENDENT, "chosen", n=8)).run(1)
    assert caught.value.code == "T421" and caught.value.help == (
        "call the kernel in the script, or pass arguments: kernel.improve(...)")


RAGGED = '''
    @tilelang.jit(target="npuir")
    def ragged(rows, columns, tile=1):
        @T.prim_func
        def ragged(L: T.Tensor((24,), "int32"), X: T.Tensor((rows, columns), "float32"),
                   Y: T.Tensor((rows, columns), "float32")):
            with T.Kernel(24, is_npu=True) as (block, _):
                x = T.alloc_shared((tile, columns), "float32")
                for t in T.serial(T.ceildiv(L[block], tile)):
                    T.copy(X[block * (rows // 24) + t * tile, 0], x)
                    T.vexp(x, x)
                    T.copy(x, Y[block * (rows // 24) + t * tile, 0])

        return ragged
'''


@pytest.mark.parametrize("executor", [None, "threads:2"])
def test_times_that_data_decide_are_those_of_the_call(executor: str | None) -> None:
    """Each block has as many rows as the data say; the arrays of the call stay as they are."""
    lengths = (np.arange(24, dtype=np.int32) % 5 + 1) * 8
    x, y = np.random.default_rng(0).standard_normal((24 * 40, 128)).astype(np.float32), np.zeros((24 * 40, 128), np.float32)
    given = [lengths, x, y]
    before = [one.copy() for one in given]
    with open_executor(executor) as workers:
        found = Improver(program(RAGGED, "ragged", rows=24 * 40, columns=128), given, executor=workers).run(60, trials=30)
    assert all(np.array_equal(one, other) for one, other in zip(given, before, strict=True))
    assert found.verdict is Verdict.EQUAL
    assert found.after < 0.5 * found.before
    kernel = program(found.improved, "ragged", rows=24 * 40, columns=128).kernel()
    kernel(*given)
    assert kernel.last_launch.time_us == pytest.approx(found.after)
    wanted = x.reshape(24, 40, 128).copy()
    for block, length in enumerate(lengths):
        np.testing.assert_allclose(given[2].reshape(24, 40, 128)[block, :length], np.exp(wanted[block, :length]), rtol=1e-5)


def test_sizes_of_a_call_give_its_time() -> None:
    text = '''
        @tilelang.jit(target="npuir")
        def doubled(tile=8):
            n = T.symbolic("n")

            @T.prim_func
            def doubled(X: T.Tensor((n, 64), "float32"), Y: T.Tensor((n, 64), "float32")):
                with T.Kernel(8, is_npu=True) as (block, _):
                    x = T.alloc_shared((tile, 64), "float32")
                    for t in T.serial(T.ceildiv(T.ceildiv(n, 8), tile)):
                        T.copy(X[block * T.ceildiv(n, 8) + t * tile, 0], x)
                        T.vadd(x, x, x)
                        T.copy(x, Y[block * T.ceildiv(n, 8) + t * tile, 0])

            return doubled
    '''
    given = [np.ones((2048, 64), np.float32), np.zeros((2048, 64), np.float32)]
    found = Improver(program(text, "doubled"), given).run(60, trials=20)
    assert found.after < 0.7 * found.before


def test_a_kernel_that_takes_too_long_to_be_timed_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    late = Timing(reason="TimeoutError: longer than 30 s")
    monkeypatch.setattr(edit_search, "time_draft", lambda _draft, seconds, arguments: late)
    with pytest.raises(TileError, match="scaled cannot be timed, so versions cannot be compared: TimeoutError: longer"):
        Improver(program(ROWS, "scaled", rows=96, columns=8)).run(1)


def test_edits_that_are_wrong_together_are_excluded_together() -> None:
    """Each of the two tiles can grow alone, and both save time; the results are others if both have grown."""
    text = '''
        @tilelang.jit(target="npuir")
        def both(rows, tile=1,
                 wide=1):
            factor = 2.0 if tile > 1 and wide > 1 else 3.0

            @T.prim_func
            def both(X: T.Tensor((rows, 64), "float32"), Y: T.Tensor((rows, 64), "float32"),
                     Z: T.Tensor((rows, 64), "float32")):
                with T.Kernel(1, is_npu=True) as (_, _):
                    x = T.alloc_shared((tile, 64), "float32")
                    z = T.alloc_shared((wide, 64), "float32")
                    for i in T.serial(rows // tile):
                        T.copy(X[i * tile, 0], x)
                        T.vmul(x, factor, x)
                        T.copy(x, Y[i * tile, 0])
                    for i in T.serial(rows // wide):
                        T.copy(X[i * wide, 0], z)
                        T.vmul(z, 3.0, z)
                        T.copy(z, Z[i * wide, 0])

            return both
    '''
    improver = Improver(program(text, "both", rows=96))
    found = improver.run(120, trials=14)
    changed = {word for change in found.changes for word in ("tile =", "wide =") if change.what.startswith(word)}
    assert len(changed) == 1, found
    assert ("tile=1," in found.improved) is (changed == {"wide ="})
    notes = [note for note in found.refused if "together with" in note]
    assert notes and len(notes) == len(found.refused), found
    for note in notes:
        assert re.fullmatch(r"line 3: tile = \d+ in place of 1 together with line 4: wide = \d+ in place of 1: different"
                            r" results: Y differs in 6144 elements, first at \[0, 0\]", note), note
    x = np.random.default_rng(1).standard_normal((96, 64)).astype(np.float32)
    y, z = np.zeros_like(x), np.zeros_like(x)
    program(found.improved, "both", rows=96).kernel()(x, y, z)
    np.testing.assert_array_equal(y, x * 3)
    np.testing.assert_array_equal(z, x * 3)


@pytest.mark.usefixtures("interruptible")
def test_ctrl_c_keeps_the_best_version_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    timed: list[str] = []

    def interrupted(draft: Draft, seconds: float, arguments: object = None) -> Timing:
        if len(timed) == 12:
            timed.append("")
            signal.raise_signal(signal.SIGINT)
        timed.append(draft.key)
        return time_draft(draft, seconds)

    monkeypatch.setattr(edit_search, "time_draft", interrupted)
    found = Improver(program(ROWS, "scaled", rows=3000, columns=200)).run(600)
    assert found.changes and found.after < 0.9 * found.before, found
    assert found.verdict is Verdict.EQUAL and found.seconds < 300
    assert found.after == made_time(found.improved, rows=3000, columns=200)


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
    kernel = copied(100_000)
    found = kernel.improve(np.ones(100_000, np.float32), np.zeros(100_000, np.float32), trials=24)
    assert found.after < 0.6 * found.before, found
