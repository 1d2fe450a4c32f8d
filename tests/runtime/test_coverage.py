"""Results that were not written: strips are an error, holes a warning, and only where they mean something."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tilelang_npu import TileError, TileWarning
from tilelang_npu.errors import Location
from tilelang_npu.runtime.coverage import Effect, check_written

C: Any = SimpleNamespace(name="C", location=Location("kernel.py", 7))


def judge(shape: tuple[int, ...], written: Any, tile: tuple[int, ...] | None, returned: bool = True) -> None:
    missing = np.ones(shape, np.bool_)
    missing[written] = False
    check_written(C, Effect(writes=True, tile=tile), missing, returned, 1)


def refused(*arguments: Any) -> TileError:
    with pytest.raises(TileError) as caught:
        judge(*arguments)
    assert caught.value.code == "T410"
    assert caught.value.location == C.location
    return caught.value


def test_all_written() -> None:
    judge((8, 8), np.s_[:, :], (4, 4))


def test_rows_at_the_end() -> None:
    error = refused((1025, 64), np.s_[:1024, :], (128, 64))
    assert error.message == "rows 1024..1024 of C are never written: the grid's tiles cover 1024 of 1025 rows"
    assert "T.ceildiv" in error.help


def test_columns_at_the_end() -> None:
    assert "columns 64..79 of C" in refused((32, 80), np.s_[:, :64], (32, 64)).message


def test_both_at_the_end() -> None:
    error = refused((33, 70), np.s_[:32, :64], (32, 64))
    assert "rows 32..32" in error.message
    assert error.notes == ("likewise columns 64..69",)


def test_elements_and_further_axes() -> None:
    assert "elements 96..99 of C" in refused((100,), np.s_[:96], (32,)).message
    assert "indices of axis 1 4..4 of C" in refused((2, 5, 8), np.s_[:, :4], (1, 4, 8)).message


def test_tiles_of_which_each_vector_core_stores_half() -> None:
    assert "rows 96..126" in refused((127, 64), np.s_[:96, :], (16, 64)).message


@pytest.mark.parametrize(
    ("written", "tile"),
    [(np.s_[1:, :], (4, 8)), (np.s_[::2, :], (1, 8)), (np.s_[:4, :], (2, 8)), (np.s_[:6, :], (4, 8)), (np.s_[:7, :], None),
     (np.s_[0:0, :], (4, 8))],
    ids=["start", "every second row", "more than a block", "not whole tiles", "tile unknown", "nothing"],
)
def test_other_holes_in_a_returned_array_warn(written: Any, tile: tuple[int, ...] | None) -> None:
    with pytest.warns(TileWarning, match=r"of 64 elements of C were never written"):
        judge((8, 8), written, tile)


@pytest.mark.parametrize("returned", [False, True])
def test_a_whole_tile_that_is_missing_warns(returned: bool) -> None:
    """A grid that was rounded down, or a kernel that leaves the last row alone: both look like this."""
    with pytest.warns(TileWarning, match=r"8 of 64 elements of C were never written"):
        judge((8, 8), np.s_[:7, :], (1, 8), returned)


def test_a_strip_of_the_callers_array_warns() -> None:
    with pytest.warns(TileWarning, match=r"1 of 3 elements of C were never written"):
        judge((3,), np.s_[:2], (2,), False)


def test_other_holes_in_the_callers_array_are_the_callers() -> None:
    judge((8, 8), np.s_[::2, :], (1, 8), False)


def test_the_warning_points_at_the_caller() -> None:
    with pytest.warns(TileWarning) as caught:
        check_written(C, Effect(writes=True), np.ones((2,), np.bool_), True, 1)
    assert caught[0].filename == __file__
