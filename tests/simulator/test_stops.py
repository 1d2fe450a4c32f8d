"""At which stop a run asks, what is seen there, and what is refused."""

from __future__ import annotations

import bdb
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tilelang_npu import TileError
from tilelang_npu.errors import Location
from tilelang_npu.simulator.machine.stops import RUNNING, Stop, Stops, looker, stop_of, stopper

HERE = Location("kernel.py", 12, 5)


def stop(**changed: Any) -> Stop:
    facts: dict[str, Any] = {"function": "main", "axes": 1, "names": "i", "tensors": '{"A": 0}', "constants": '{"tile": 8}',
                             "unwritten": '{"z": "z [4] float32"}'}
    return stop_of(facts | changed, HERE)


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []

    def hook() -> None:
        frame = sys._getframe(1)
        found.append({**frame.f_locals, "name": frame.f_code.co_name, "file": frame.f_code.co_filename})

    monkeypatch.setattr(sys, "breakpointhook", hook)
    return found


def test_the_first_block_that_comes_by_stops_each_time_and_no_other(seen: list[dict[str, Any]]) -> None:
    tensor = np.arange(6.0)
    with Stops([tensor]) as stops:
        look, pass_by = looker("a", lambda tile: tile.reshape(2, 2)), stopper(stop())
        tile = np.zeros(4)
        for block, sub in ((5, 0), (5, 1), (2, 0), (5, 0)):
            tile += 1
            look(block, "AIV", sub, tile)
            pass_by(block, "AIV", sub, block, 40 + block)
    assert stops.chosen == (5, 0)
    assert [one["a"].tolist() for one in seen] == [[[1, 1], [1, 1]], [[4, 4], [4, 4]]]  # as it was when it came by
    assert [(one["i"], one["tile"], one["name"], one["file"]) for one in seen] == [(45, 8, "main", "kernel.py")] * 2
    assert np.array_equal(seen[0]["A"], tensor)
    assert repr(seen[0]["z"]) == "<z [4] float32: nothing above this line has written it>"
    for name in ("a", "A"):
        with pytest.raises(ValueError, match="read-only"):
            seen[0][name][0] = 1


def test_a_block_is_asked_for_by_all_its_indices(seen: list[dict[str, Any]]) -> None:
    two = stop(axes=2)
    with Stops([np.zeros(1)], "1,0") as stops:
        for number, (row, column) in enumerate(np.ndindex(2, 2)):
            stopper(two)(number, "AIV", 0, row, column, 7)
    assert stops.chosen == (2, 0)
    assert len(seen) == 1
    for asked in ("1", "1,x", "1,0,0"):
        with pytest.raises(TileError, match="names no block") as caught, Stops([np.zeros(1)], asked):
            stopper(two)(0, "AIV", 0, 0, 1, 7)
        assert caught.value.code == "T422"
        assert caught.value.location == HERE
        assert "2 numbers as T.Kernel binds them, such as 0,1" in caught.value.help
    with pytest.warns(UserWarning, match="no such block"), Stops([np.zeros(1)], "9,9"):
        stopper(two)(0, "AIV", 0, 0, 1, 7)


def test_the_cube_core_waits_with_its_tiles_for_the_vector_core_of_its_block(seen: list[dict[str, Any]]) -> None:
    both = stop(together=True)
    with Stops([np.zeros(1)]):
        for turn in range(2):
            looker("c", lambda tile: tile)(0, "AIC", 0, np.full(2, turn))
            stopper(both)(0, "AIC", 0, 0, turn)
        for turn in range(2):
            looker("v", lambda tile: tile)(0, "AIV", 0, np.full(2, 10 + turn))
            stopper(both)(0, "AIV", 0, 0, turn)
    assert [(one["c"][0], one["v"][0], one["i"]) for one in seen] == [(0, 10, 0), (1, 11, 1)]


def test_tiles_of_a_list_are_that_list(seen: list[dict[str, Any]]) -> None:
    with Stops([np.zeros(1)]):
        for name, number in (("a[1]", 1), ("a[0]", 0), ("b[0][1]", 3), ("b[0][0]", 2), ("b[1][0]", 4)):
            looker(name, lambda tile: tile)(0, "AIV", 0, np.array([number]))
        stopper(stop())(0, "AIV", 0, 0, 1)
    assert [int(one[0]) for one in seen[0]["a"]] == [0, 1]
    assert [[int(one[0]) for one in row] for row in seen[0]["b"]] == [[2, 3], [4]]


def test_outside_of_a_run_for_its_author_nothing_stops(seen: list[dict[str, Any]]) -> None:
    assert RUNNING.get() is None
    looker("a", lambda tile: tile)(0, "AIV", 0, np.zeros(1))
    stopper(stop())(0, "AIV", 0, 0, 1)
    assert not seen


@pytest.mark.parametrize(("does", "code", "said"), [
    ("raise bdb.BdbQuit", "T423", "the run was ended in the debugger"),
    ("raise RuntimeError('no display')", "T422", "the debugger failed: RuntimeError: no display"),
])
def test_a_debugger_that_ends_or_fails(does: str, code: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def hook() -> None:
        exec(does, {"bdb": bdb})

    monkeypatch.setattr(sys, "breakpointhook", hook)
    with pytest.raises(TileError, match=said) as caught, Stops([np.zeros(1)]):
        stopper(stop())(0, "AIV", 0, 0, 1)
    assert (caught.value.code, caught.value.location) == (code, HERE)


def test_a_name_that_is_set_in_the_debugger_is_refused(tmp_path: Path) -> None:
    """By a debugger of its own process, as setting a variable of a frame takes one."""
    import subprocess

    script = tmp_path / "set.py"
    script.write_text("import numpy as np\nfrom tilelang_npu.errors import Location, TileError\n"
                      "from tilelang_npu.simulator.machine.stops import Stops, stop_of, stopper\n"
                      "stop = stop_of({'function': 'main', 'axes': 1, 'names': 'i'}, Location('kernel.py', 12))\n"
                      "try:\n    with Stops([]):\n        stopper(stop)(0, 'AIV', 0, 0, 41)\n"
                      "except TileError as error:\n    print(error.code, error.message)\n")
    done = subprocess.run([sys.executable, script], input="p i + 1\ni = 3\nc\n", capture_output=True, text=True, check=True,
                          env={name: value for name, value in os.environ.items() if name not in ("CI", "PYTHONBREAKPOINT")})
    assert "42" in done.stdout
    assert "T422 'i' was set in the debugger" in done.stdout
