"""Which points of a ``T.Parallel`` reach the same element: values against NumPy, and whether it is vector work."""

from __future__ import annotations

import importlib.util
import itertools
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from xdsl.dialects import memref

import tilelang_npu as tilelang
from tilelang_npu.analysis.parallel_dependence import (
    are_disjoint,
    find_dependence,
    index_sums_of,
    overlap_only_at_same_point,
)
from tilelang_npu.analysis.ranges import Ranges
from tilelang_npu.dialects import tile
from tilelang_npu.dialects.text import parse_module

ROWS, COLUMNS = 12, 64

KERNEL = """
import tilelang_npu as tilelang
import tilelang_npu.language as T

@T.prim_func
def main(G: T.Tensor(({rows}, {columns}), "{dtype}"), S: T.Tensor(({rows}, {columns}), "{dtype}"),
         N: T.Tensor((16,), "int32"), n: T.int32):
    with T.Kernel(1, is_npu=True) as (cid, _):
        g = T.alloc_shared(({rows}, {columns}), "{dtype}")
        s = T.alloc_shared(({rows}, {columns}), "{dtype}")
        number = T.alloc_shared((16,), "int32")
        T.copy(G, g)
        T.copy(S, s)
        T.copy(N, number)
{body}
        T.copy(s, S)
"""

VECTORS: dict[str, str] = {
    "the row above": """
for i in T.serial(1, 12):
    for j in T.Parallel(64):
        s[i, j] = s[i - 1, j] + g[i, j]""",
    "the row below": """
for i in T.serial(11):
    for j in T.Parallel(64):
        s[i, j] = s[i + 1, j] + g[i, j]""",
    "the row above, shifted": """
for i in T.serial(1, 12):
    for j in T.Parallel(56):
        s[i, j] = s[i - 1, j + 8] + g[i, j]""",
    "the row above, backwards": """
for i in T.serial(1, 12):
    for j in T.Parallel(64):
        s[i, j] = s[i - 1, 63 - j] + g[i, j]""",
    "the first column of the row above": """
for i in T.serial(1, 12):
    for j in T.Parallel(64):
        s[i, j] = s[i - 1, 0] + g[i, j]""",
    "two rows above": """
for i in T.serial(2, 12):
    for j in T.Parallel(64):
        s[i, j] = s[i - 1, j] * 0.5 + s[i - 2, j] * 0.25 + g[i, j]""",
    "two rows in turn": """
for i in T.serial(12):
    for j in T.Parallel(64):
        s[i % 2, j] = s[(i + 1) % 2, j] * 0.5 + g[i, j]""",
    "two rows in turn, shifted": """
for i in T.serial(12):
    for j in T.Parallel(56):
        s[i % 2, j] = s[(i + 1) % 2, j + 8] * 0.5 + g[i, j]""",
    "three rows in turn, shifted": """
for i in T.serial(12):
    for j in T.Parallel(56):
        s[(i + 2) % 3, j] = s[(i + 1) % 3, j + 8] * 0.5 + s[i % 3, j] + g[i, j]""",
    "the row before in turn, shifted": """
for i in T.serial(12):
    for j in T.Parallel(56):
        s[i % 3, j] = s[(i - 1) % 3, j + 8] * 0.5 + g[i, j]""",
    "the row before in turn of four, shifted": """
for i in T.serial(12):
    for k in T.serial(2):
        for j in T.Parallel(56):
            s[(i * 2 + 1) % 4, j] = s[(i + 1) * 2 % 4 + 4 * k, j + 8] * 0.5 + g[i, j]""",
    "rows that come around, the same columns": """
for i in T.serial(12):
    for j in T.Parallel(64):
        s[i % 3, j] = s[(i + 3) % 3, j] * 0.5 + g[i, j]""",
    "rows that are read": """
for i in T.serial(12):
    for j in T.Parallel(64):
        s[number[i], j] = s[number[11 - i], j] * 0.5 + g[i, j]""",
    "a row that the call gives": """
for i in T.serial(12):
    for j in T.Parallel(64):
        s[i, j] = s[n, j] * 0.5 + g[i, j]""",
    "every second row, shifted": """
for i in T.serial(6):
    for k in T.serial(6):
        for j in T.Parallel(56):
            s[2 * i, j] = s[2 * k + 1, j + 8] * 0.5 + g[i, j]""",
    "a triangle, shifted": """
for i in T.serial(1, 12):
    for k in T.serial(i):
        for j in T.Parallel(56):
            s[i, j] = s[k, j + 8] * 0.5 + s[i, j]""",
    "two statements": """
for i in T.serial(1, 12):
    for j in T.Parallel(64):
        s[i, j] = s[i - 1, j] + g[i, j]
        s[i - 1, j] = s[i, j] * 0.5""",
    "a choice": """
for i in T.serial(1, 12):
    for j in T.Parallel(64):
        s[i, j] = T.if_then_else(g[i, j] > 0.0, s[i - 1, j], g[i, j])""",
    "halves of the columns": """
for j in T.Parallel(32):
    s[3, j] = s[3, j + 32] * 0.5 + g[3, j]""",
    "a recurrence over rows inside": """
for j in T.Parallel(64):
    for i in T.serial(1, 12):
        s[i, j] = s[i - 1, j] + g[i, j]""",
    "two recurrences over rows inside": """
for j in T.Parallel(64):
    s[0, j] = g[0, j]
    for i in T.serial(2, 12):
        s[i, j] = s[i - 1, j] * 0.5 + s[i - 2, j] + g[i, j]
    s[0, j] = s[11, j]""",
    "rows by rows of two axes": """
for i in T.serial(1, 3):
    for r, j in T.Parallel(4, 64):
        s[i * 4 + r, j] = s[i * 4 - 4 + r, j] * 0.5 + g[r, j]""",
}
"""Bodies without dependences between points: vector work."""

POINTS: dict[str, str] = {
    "the column before": """
for i in T.serial(12):
    for j in T.Parallel(63):
        s[i, j + 1] = s[i, j] * 0.5 + g[i, j]""",
    "the next column, written first": """
for i in T.serial(12):
    for j in T.Parallel(56):
        s[i, j + 8] = s[i, j] * 0.5 + g[i, j]""",
    "two rows in turn that are one, shifted": """
for i in T.serial(12):
    for j in T.Parallel(56):
        s[i % 2, j + 8] = s[(i + 2) % 2, j] * 0.5 + g[i, j]""",
    "rows that come around, shifted": """
for i in T.serial(12):
    for j in T.Parallel(56):
        s[i % 3, j + 8] = s[(i + 3) % 3, j] * 0.5 + g[i, j]""",
    "rows of two moduli, shifted": """
for i in T.serial(12):
    for j in T.Parallel(56):
        s[i % 2, j + 8] = s[(i + 1) % 3, j] * 0.5 + g[i, j]""",
    "rows that are read, shifted": """
for i in T.serial(12):
    for j in T.Parallel(56):
        s[number[i], j + 8] = s[number[i], j] * 0.5 + g[i, j]""",
    "a row that the call gives, shifted": """
for i in T.serial(12):
    for j in T.Parallel(56):
        s[i, j + 8] = s[n, j] * 0.5 + g[i, j]""",
    "every third row overlaps every second, shifted": """
for i in T.serial(4):
    for k in T.serial(6):
        for j in T.Parallel(56):
            s[3 * i, j + 8] = s[2 * k + 1, j] * 0.5 + g[i, j]""",
    "a triangle with its diagonal, shifted": """
for i in T.serial(12):
    for k in T.serial(i + 1):
        for j in T.Parallel(56):
            s[i, j + 8] = s[k, j] * 0.5 + g[i, j]""",
    "columns that come around": """
for i in T.serial(12):
    for j in T.Parallel(64):
        s[i, (j + 8) % 64] = s[i, j] * 0.5 + g[i, j]""",
    "backwards": """
for i in T.serial(12):
    for j in T.Parallel(64):
        s[i, j] = s[i, 63 - j] * 0.5 + g[i, j]""",
    "one element for all": """
for i in T.serial(12):
    for j in T.Parallel(64):
        s[i, j] = s[i, 20] * 0.5 + g[i, j]""",
    "a recurrence over rows inside that moves on": """
for j in T.Parallel(56):
    for i in T.serial(1, 12):
        s[i, j + 8] = s[i - 1, j] * 0.5 + g[i, j]""",
}
"""Bodies in which a point reads an element that another point writes: the order of points matters."""

MIXED: dict[str, str] = {
    "rows of two axes": """
for i, j in T.Parallel(11, 64):
    s[i + 1, j] = s[i, j] + g[i, j]""",
    "a choice of two rows that may be one": """
for i in T.serial(12):
    for j in T.Parallel(64):
        if g[i, j] > 0.0:
            s[i, j] = g[i, j] * 0.5
            s[n, j] = s[i, j] + s[n, j]
        else:
            s[n, j] = g[i, j]""",
    "a choice that reads a row after it was written": """
for i in T.serial(12):
    for j in T.Parallel(64):
        if g[i, j] > 0.0:
            s[number[i], j] = g[i, j]
            s[11 - i, j] = s[i, j] + 1.0""",
    "two statements on rows that may be one": """
for i in T.serial(12):
    for j in T.Parallel(64):
        s[number[i], j] = g[i, j] * 0.5
        s[n, j] = s[i, j] + s[n, j]""",
    "written, read elsewhere, written again": """
for i in T.serial(12):
    for j in T.Parallel(64):
        s[i, j] = s[n, j] + g[i, j]
        s[n, j] = s[i, j] * 0.5
        s[i, j] = s[n, j] - g[i, j]""",
    "an old value of a row that may be written": """
for i in T.serial(12):
    for j in T.Parallel(64):
        old = s[n, j]
        s[i, j] = g[i, j]
        s[11 - i, j] = old + s[n, j]""",
    "a recurrence inside with a choice": """
for j in T.Parallel(64):
    for i in T.serial(1, 12):
        if g[i, j] > 0.0:
            s[i, j] = s[i - 1, j] + g[i, j]
        else:
            s[i, j] = g[i, j]""",
    "rows that are read, inside": """
for j in T.Parallel(64):
    for i in T.serial(12):
        s[number[i], j] = s[number[11 - i], j] * 0.5 + g[i, j]""",
    "below zero": """
for i in T.serial(12):
    for j in T.Parallel(56):
        s[(i + 10) % 12, j] = s[(i - 2) % 12, j + 8] * 0.5 + g[i, j]""",
}
"""Bodies that may become either."""


class _Python:
    """The language as plain Python on NumPy arrays: loops are loops."""

    serial = staticmethod(range)

    @staticmethod
    def Parallel(*extents: int) -> Any:
        return range(*extents) if len(extents) == 1 else itertools.product(*map(range, extents))

    @staticmethod
    def if_then_else(condition: Any, one: Any, other: Any) -> Any:
        return one if condition else other


def _module(body: str, tmp_path: Path, dtype: str) -> Any:
    text = KERNEL.format(rows=ROWS, columns=COLUMNS, dtype=dtype, body="\n".join(" " * 8 + line for line in body.splitlines()))
    path = tmp_path / "kernel.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location("kernel", path)
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made.main


def _agrees(body: str, tmp_path: Path, dtype: str, target: str, n: int) -> str:
    """Compares a kernel with Python, and returns the compiler's remark on it."""
    rng = np.random.default_rng(len(body))
    kind = np.dtype(getattr(ml_dtypes, dtype, None) or dtype)
    g, s = (rng.integers(-4, 5, (ROWS, COLUMNS)).astype(kind) for _ in range(2))
    numbers = rng.integers(0, ROWS, 16).astype(np.int32)
    configs = {"tl.ascend_auto_sync": True} if target == "ascendc" else {}
    kernel = tilelang.compile(_module(body, tmp_path, dtype), target=target, pass_configs=configs)
    expected = s.astype(np.float32 if kind.kind != "i" else np.int64)
    exec(body, {"T": _Python, "s": expected, "g": g.astype(expected.dtype), "number": numbers, "n": n})
    if kind.itemsize == 4:
        kernel(g, s, numbers, n)
        np.testing.assert_array_equal(s, expected.astype(kind))
    else:  # Python rounds less often
        kernel(g, s, numbers, n)
        np.testing.assert_allclose(s.astype(np.float32), expected, rtol=0.05, atol=0.05)
    return str(kernel.explain())


@pytest.mark.parametrize("target", ["npuir", "ascendc"])
@pytest.mark.parametrize("name", VECTORS)
def test_points_without_dependences_are_vector_work(name: str, target: str, tmp_path: Path) -> None:
    assert "point by point" not in _agrees(VECTORS[name], tmp_path, "float32", target, 5)


@pytest.mark.filterwarnings("ignore:T149")
@pytest.mark.parametrize("name", POINTS)
def test_points_that_read_what_others_write_keep_their_order(name: str, tmp_path: Path) -> None:
    assert "point by point" in _agrees(POINTS[name], tmp_path, "float32", "npuir", 5)


@pytest.mark.filterwarnings("ignore:T149")
@pytest.mark.parametrize("n", [0, 5, 11])
@pytest.mark.parametrize("target", ["npuir", "ascendc"])
@pytest.mark.parametrize("name", MIXED)
def test_values_are_those_of_the_points_in_order(name: str, target: str, n: int, tmp_path: Path) -> None:
    _agrees(MIXED[name], tmp_path, "float32", target, n)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int32"])
@pytest.mark.parametrize("name", ["the row above", "two rows in turn, shifted", "rows that are read", "a triangle, shifted",
                                  "the row above, backwards", "a recurrence over rows inside"])
def test_other_element_types(name: str, dtype: str, tmp_path: Path) -> None:
    body = VECTORS[name].replace(" * 0.5", "")
    _agrees(body if name != "a triangle, shifted" else VECTORS["the row below"], tmp_path, dtype, "npuir", 5)


def _loop(accesses: str, box: str, before: str = "") -> tile.ParallelOp:
    names = ", ".join(f"%{name}: index" for name in "ijk"[:box.count(",") + 1])
    module = parse_module(f"""
        func.func @f(%m: memref<64x64xf32>, %a: index, %b: index) {{
          {' '.join(f'%c{value} = arith.constant {value} : index' for value in (0, 1, 2, 3, 4, 8))}
          {before}
          tile.parallel [{box}] {{
          ^bb0({names}):
            {accesses}
          }}
          return
        }}""")
    return next(op for op in module.walk() if isinstance(op, tile.ParallelOp))


def _read(place: str, name: str = "x") -> str:
    return f"%{name} = memref.load %m[{place}] : memref<64x64xf32>"


def _write(place: str, name: str = "x") -> str:
    return f"memref.store %{name}, %m[{place}] : memref<64x64xf32>"


@pytest.mark.parametrize(("accesses", "box", "shared"), [
    (f"{_read('%a, %i')} {_write('%b, %i')}", "8", False),
    (f"{_read('%i, %a')} {_write('%b, %i')}", "8", True),
    (f"{_read('%a, %i')} {_write('%a, %j')}", "8, 8", True),
    (f"{_read('%i, %j')} {_write('%i, %j')}", "8, 8", False),
    (f"{_read('%i, %j')} {_write('%j, %i')}", "8, 8", True),
    (f"{_read('%i, %a')} {_write('%i, %b')}", "8, 8", True),
    (f"{_read('%i, %a')} {_write('%i, %b')}", "8, 1", False),
    (f"%p = arith.muli %i, %c8 : index %q = arith.addi %p, %j : index {_read('%a, %q')} {_write('%b, %q')}", "8, 8", False),
    (f"%p = arith.muli %i, %c4 : index %q = arith.addi %p, %j : index {_read('%a, %q')} {_write('%b, %q')}", "8, 8", True),
    (f"%p = arith.muli %i, %c2 : index %q = arith.addi %p, %c1 : index {_read('%a, %p')} {_write('%b, %q')}", "8", False),
    (f"%p = arith.muli %i, %c2 : index %q = arith.addi %p, %c2 : index {_read('%a, %p')} {_write('%b, %q')}", "8", True),
    (f"%q = arith.addi %i, %c8 : index {_read('%a, %i')} {_write('%b, %q')}", "8", False),
    (f"%q = arith.addi %i, %c8 : index {_read('%a, %i')} {_write('%b, %q')}", "9", True),
    (f"%q = arith.addi %i, %a : index {_read('%a, %q')} {_write('%b, %q')}", "8", False),
    (f"%q = arith.addi %i, %a : index {_read('%a, %i')} {_write('%b, %q')}", "8", True),
    (f"%q = arith.remui %i, %c8 : index {_read('%a, %q')} {_write('%b, %q')}", "16", True),
    (f"scf.for %t = %c0 to %c8 step %c1 {{ {_read('%t, %i')} {_write('%a, %i')} }}", "8", False),
    (f"scf.for %t = %c0 to %c8 step %c1 {{ {_read('%i, %t')} {_write('%i, %t')} }}", "8", False),
    (f"scf.for %t = %c0 to %c8 step %c1 {{ %q = arith.addi %i, %t : index {_read('%a, %q')} {_write('%a, %i')} }}", "8", True),
])
def test_the_first_shared_element(accesses: str, box: str, shared: bool) -> None:
    assert (find_dependence(_loop(accesses, box), Ranges()) is not None) is shared


@pytest.mark.parametrize("signed", [True, False])
@pytest.mark.parametrize(("by", "step", "differ"), [(2, 1, True), (2, 2, False), (3, 2, True), (3, 3, False), (4, 6, True),
                                                    (4, 8, False)])
def test_remainders(by: int, step: int, differ: bool, signed: bool) -> None:
    rem = "remsi" if signed else "remui"
    before = (f"%by = arith.constant {by} : index %step = arith.constant {step} : index scf.for %t = %c0 to %c8 step %c1 {{"
              f"%u = arith.addi %t, %step : index %p = arith.{rem} %t, %by : index %q = arith.{rem} %u, %by : index")
    loop = _loop(f"{_read('%p, %i')} %s = arith.addi %i, %c1 : index {_write('%q, %s')} }}", "8", before)
    read, write = (index_sums_of(loop, op) for op in loop.body.block.ops if isinstance(op, (memref.LoadOp, memref.StoreOp)))
    assert are_disjoint(read, write, [8], Ranges()) is differ
    assert not overlap_only_at_same_point(read, write, [8])


def test_a_number_that_may_be_below_zero_leaves_no_known_remainder_where_it_is_read_as_unsigned() -> None:
    """2**64 - 1 leaves 0 by 3, as 0 does."""
    before = ("%m1 = arith.constant -1 : index scf.for %t = %m1 to %c8 step %c1 { %u = arith.addi %t, %c1 : index"
              " %p = arith.remui %t, %c3 : index %q = arith.remui %u, %c3 : index")
    loop = _loop(f"{_read('%p, %i')} %s = arith.addi %i, %c1 : index {_write('%q, %s')} }}", "8", before)
    read, write = (index_sums_of(loop, op) for op in loop.body.block.ops if isinstance(op, (memref.LoadOp, memref.StoreOp)))
    assert not are_disjoint(read, write, [8], Ranges())
