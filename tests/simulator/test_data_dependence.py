"""What depends on data in a function is known without its IR, in another process too."""

from __future__ import annotations

import pickle
from pathlib import Path

import tilelang_npu as tilelang
import tilelang_npu.language as T
from tilelang_npu.simulator.machine.placeholder_data import DataUses

ROWS = 8


def told(function: object) -> DataUses:
    (one,) = tilelang.compile(function, target="npuir").programs[0].traced
    return one.data


def test_branches_trips_and_places_are_told_with_their_lines() -> None:
    @T.prim_func
    def main(chosen: T.Tensor((ROWS,), "int32"), X: T.Tensor((ROWS, 64), "float32"), Y: T.Tensor((ROWS, 64), "float32")):
        with T.Kernel(1, is_npu=True) as (_, _):
            x = T.alloc_ub((1, 64), "float32")
            for i in T.serial(ROWS):
                T.copy(X[chosen[i], 0], x)
                if chosen[i] > 3:
                    T.copy(x, Y[i, 0])

    found = told(main)
    assert {"branch", "place"} <= {use.what for use in found.uses}
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    branches = {use.location for use in found.uses if use.what == "branch"} - {None}
    assert {lines[at.line - 1].strip() for at in branches if at is not None} == {
        "T.copy(X[chosen[i], 0], x)", "if chosen[i] > 3:"}  # of the copy, whether its row is there
    assert 3 in found.compared
    assert pickle.loads(pickle.dumps(found)) == found


def test_nothing_is_told_of_what_numbers_do_not_decide() -> None:
    @T.prim_func
    def main(X: T.Tensor((ROWS, 64), "float32"), Y: T.Tensor((ROWS, 64), "float32")):
        with T.Kernel(1, is_npu=True) as (_, _):
            x = T.alloc_ub((ROWS, 64), "float32")
            T.copy(X, x)
            T.vexp(x, x)
            T.copy(x, Y)

    assert told(main) == DataUses((), ())
