"""A NaN in a result that comes of memory nothing wrote: the run names the line that reads it."""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T
from tilelang_npu import TileWarning


def sums(clear: bool, out: str = "float32") -> Any:
    """Row sums added up over two tiles; without ``clear`` onto what the buffer happens to hold."""

    @T.prim_func
    def sums(X: T.Tensor((8, 128), "float32"), Y: T.Tensor((8, 1), out)):
        with T.Kernel(1, is_npu=True) as (cid, _):
            x = T.alloc_ub((8, 64), "float32")
            part = T.alloc_ub((8, 1), "float32")
            total = T.alloc_ub((8, 1), "float32")
            if clear:
                T.clear(total)
            for step in T.serial(2):
                T.copy(X[0, step * 64], x)
                T.reduce_sum(x, part, dim=1)
                T.vadd(total, part, total)  # reads total
            T.copy(total, Y)

    return tilelang.compile(sums, target="npuir")


def line_of(mark: str) -> int:
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    return next(number for number, line in enumerate(lines, 1) if line.endswith(mark))


def test_the_line_that_reads_is_named_once() -> None:
    kernel = sums(False)
    x, y = np.ones((8, 128), np.float32), np.zeros((8, 1), np.float32)
    with pytest.warns(TileWarning) as caught:
        kernel(x, y)
    assert np.isnan(y).all()
    told = caught[0]
    assert (Path(told.filename).name, told.lineno) == (Path(__file__).name, line_of("# reads total"))
    assert re.search(r"stale\[S221\]: UB bytes \d+\.\.\d+ of total are read though nothing in the block wrote them",
                     str(told.message))
    assert "bytes of Y depend on them" in str(told.message)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kernel(x, y)  # told already


@pytest.mark.parametrize("x", [np.ones((8, 128), np.float32), np.full((8, 128), np.nan, np.float32)], ids=["numbers", "nan"])
def test_nothing_is_said_of_other_results(x: np.ndarray) -> None:
    y = np.zeros((8, 1), np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sums(True)(x, y)
    np.testing.assert_array_equal(y, x.sum(1, keepdims=True))
