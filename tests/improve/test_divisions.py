"""Divisions by a number of a row become products: the text, and results within rounding."""

from __future__ import annotations

import pytest

pytest.importorskip("libcst", reason="the extra improve is not installed")

from improve.scripts import program
from tilelang_npu.runtime.checks.result_comparison import Verdict
from tilelang_npu.runtime.improve.improvement import Improver
from tilelang_npu.runtime.improve.subjects.divisions import divisions
from tilelang_npu.runtime.improve.subjects.subject import ScriptTree
from tilelang_npu.runtime.improve.verification import ResultComparison

KERNEL = '''\
@tilelang.jit(target="npuir")
def scaled(rows, columns, tile=8):
    @T.prim_func
    def scaled(X: T.Tensor((rows, columns), "float32"), S: T.Tensor((rows, 1), "float32"),
               Y: T.Tensor((rows, columns), "float32")):
        with T.Kernel(T.ceildiv(rows, tile), is_npu=True) as (block, _):
            x = T.alloc_shared((tile, columns), "float32")
            s = T.alloc_shared((tile, 1), "float32")
            T.copy(X[block * tile, 0], x)
            T.copy(S[block * tile, 0], s)
            T.vadd(s, 5.0, s)
            # of each row
            for r, c in T.Parallel(tile, columns):
                x[r, c] = (x[r, c] + 1) / s[r, 0] - x[r, c] / x[r, c] / s[r, 0]
            T.copy(x, Y[block * tile, 0])

    return scaled
'''


def test_the_text() -> None:
    (only,) = divisions(ScriptTree(KERNEL, "scaled"))
    made = only.tree.edited(only.replacements(1))
    assert made == KERNEL.replace('''            for r, c in T.Parallel(tile, columns):
                x[r, c] = (x[r, c] + 1) / s[r, 0] - x[r, c] / x[r, c] / s[r, 0]
''', '''            for r in T.Parallel(tile):
                s[r, 0] = 1 / s[r, 0]
            for r, c in T.Parallel(tile, columns):
                x[r, c] = (x[r, c] + 1) * s[r, 0] - x[r, c] / x[r, c] * s[r, 0]
''')


def test_two_divisors_of_one_loop() -> None:
    text = KERNEL.replace("x[r, c] / x[r, c] / s[r, 0]", "x[r, c] / t[r, 0]")
    one, other = divisions(ScriptTree(text, "scaled"))
    made = one.tree.edited(one.replacements(1), other.replacements(1))
    assert made == text.replace('''            for r, c in T.Parallel(tile, columns):
                x[r, c] = (x[r, c] + 1) / s[r, 0] - x[r, c] / t[r, 0]
''', '''            for r in T.Parallel(tile):
                s[r, 0] = 1 / s[r, 0]
            for r in T.Parallel(tile):
                t[r, 0] = 1 / t[r, 0]
            for r, c in T.Parallel(tile, columns):
                x[r, c] = (x[r, c] + 1) * s[r, 0] - x[r, c] * t[r, 0]
''')


@pytest.mark.parametrize(("rows", "columns"), [(64, 64), (100, 72)])
def test_results_are_equal_within_rounding(rows: int, columns: int) -> None:
    (only,) = divisions(ScriptTree(KERNEL, "scaled"))
    texts = (KERNEL, only.tree.edited(only.replacements(1)))
    one, other = (program(text, "scaled", rows=rows, columns=columns) for text in texts)
    assert ResultComparison(one.kernel()).verdict(other.kernel())[0] is Verdict.ROUNDED


def test_only_if_roundings_may_change() -> None:
    made = program(KERNEL, "scaled", rows=4096, columns=512)
    assert not any("reciprocal" in change.what for change in Improver(made).run(60, trials=12).changes)


@pytest.mark.parametrize("line", ["x[r, c] = x[r, c] / s[r, c]", "x[r, c] = x[r, c] / 3", "x[r, c] = s[r, 0] / x[r, c]",
                                  "x[r, c] = x[r, c] / y[0, 0]", "x[r, c] = x[r, c] // s[r, 0]"])
def test_divisions_that_stay(line: str) -> None:
    text = f"def f(n):\n    with T.Kernel(1) as b:\n        for r, c in T.Parallel(8, n):\n            {line}\n"
    assert list(divisions(ScriptTree(text, "f"))) == []
