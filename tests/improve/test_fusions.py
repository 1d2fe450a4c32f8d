"""Fusion of launches: the text, the results, and fusions that are not made because they would change results."""

from __future__ import annotations

import textwrap

import numpy as np
import pytest

pytest.importorskip("libcst", reason="the extra improve is not installed")

from improve.scripts import program
from tilelang_npu.runtime.checks.result_comparison import Verdict
from tilelang_npu.runtime.improve.improvement import Improver
from tilelang_npu.runtime.improve.subjects.block_counts import launches
from tilelang_npu.runtime.improve.subjects.fusions import fusions
from tilelang_npu.runtime.improve.subjects.loop_stages import loops
from tilelang_npu.runtime.improve.subjects.subject import ScriptTree, SubjectFacts
from tilelang_npu.runtime.improve.verification import ResultComparison

KERNEL = '''\
@tilelang.jit(target="npuir")
def both(rows, columns, tile=2):
    @T.prim_func
    def both(X: T.Tensor((rows, columns), "float32"), Y: T.Tensor((rows, columns), "float32")):
        S = T.alloc_global((rows, columns), "float32")
        with T.Kernel(48, is_npu=True) as (core, _):
            x = T.alloc_shared((tile, columns), "float32")
            k = T.alloc_shared((1, columns), "float32")
            T.fill(k, 3.0)
            for i in T.serial(T.ceildiv(rows, tile * 48)):
                row = (i * 48 + core) * tile  # the first row
                T.copy(X[row, 0], x)
                for r, c in T.Parallel(tile, columns):
                    x[r, c] = x[r, c] * k[0, c]
                T.copy(x, S[row, 0])
        with T.Kernel(48, is_npu=True) as (core, _):
            s = T.alloc_shared((tile, columns), "float32")
            k = T.alloc_shared((tile, columns), "float32")
            for i in T.serial(T.ceildiv(rows, tile * 48)):
                row = (i * 48 + core) * tile
                T.copy({place}, s)
                T.copy(X[row, 0], k)
                for r, c in T.Parallel(tile, columns):
                    s[r, c] = s[r, c] + k[r, c]
                T.copy(s, Y[row, 0])

    return both
'''
SAME = KERNEL.replace("{place}", "S[row, 0]")


def fused(text: str) -> str:
    tree = ScriptTree(text, "both")
    (only,) = fusions(tree)
    return tree.edited(only.replacements(1))


def test_the_tile_stays_on_the_chip_and_names_stay_apart() -> None:
    made = fused(SAME)
    assert made == textwrap.dedent('''\
        @tilelang.jit(target="npuir")
        def both(rows, columns, tile=2):
            @T.prim_func
            def both(X: T.Tensor((rows, columns), "float32"), Y: T.Tensor((rows, columns), "float32")):
                with T.Kernel(48, is_npu=True) as (core, _):
                    x = T.alloc_shared((tile, columns), "float32")
                    k = T.alloc_shared((1, columns), "float32")
                    T.fill(k, 3.0)
                    s = T.alloc_shared((tile, columns), "float32")
                    k_2 = T.alloc_shared((tile, columns), "float32")
                    for i in T.serial(T.ceildiv(rows, tile * 48)):
                        row = (i * 48 + core) * tile  # the first row
                        T.copy(X[row, 0], x)
                        for r, c in T.Parallel(tile, columns):
                            x[r, c] = x[r, c] * k[0, c]
                        T.copy(x, s)
                        T.copy(X[row, 0], k_2)
                        for r, c in T.Parallel(tile, columns):
                            s[r, c] = s[r, c] + k_2[r, c]
                        T.copy(s, Y[row, 0])

            return both
        ''')


@pytest.mark.parametrize(("rows", "columns"), [(960, 64), (1000, 72), (7, 8)])
def test_results_are_equal(rows: int, columns: int) -> None:
    one, other = program(SAME, "both", rows=rows, columns=columns), program(fused(SAME), "both", rows=rows, columns=columns)
    assert ResultComparison(one.kernel()).verdict(other.kernel())[0] is Verdict.EQUAL


def test_a_search_makes_it() -> None:
    found = Improver(program(SAME, "both", rows=4800, columns=256)).run(60, trials=24)
    assert any("one launch" in change.what for change in found.changes), found
    assert found.after < 0.7 * found.before
    x = np.random.default_rng(0).standard_normal((4800, 256)).astype(np.float32)
    y = np.zeros_like(x)
    program(found.improved, "both", rows=4800, columns=256).kernel()(x, y)
    np.testing.assert_array_equal(y, x * 3 + x)


def test_a_loop_that_another_edit_has_pipelined_is_still_one() -> None:
    tree = ScriptTree(SAME, "both")
    (only,), (first, _) = fusions(tree), loops(tree)
    made = tree.edited(only.replacements(1), first.replacements(2))
    assert made.count("T.Pipelined(") == 1 and "T.serial(" not in made and made.count("T.Kernel(") == 1


def test_a_launch_that_needs_all_of_the_first_one_stays() -> None:
    """Rows are read that other blocks, or later iterations, write: fused, the kernel would read them too early."""
    text = KERNEL.replace("{place}", "S[rows - tile - row, 0]")
    one, other = program(text, "both", rows=960, columns=64), program(fused(text), "both", rows=960, columns=64)
    assert ResultComparison(one.kernel()).verdict(other.kernel())[0] in (Verdict.DIFFERENT, Verdict.HAZARD)
    found = Improver(program(text, "both", rows=960, columns=64)).run(60, trials=16)
    assert not any("one launch" in change.what for change in found.changes)


def test_a_tensor_that_is_read_elsewhere_is_still_stored() -> None:
    text = SAME.replace("                T.copy(s, Y[row, 0])\n",
                        "                T.copy(s, Y[row, 0])\n                T.copy(S[row, 0], k)\n")
    made = fused(text)
    assert "T.copy(x, S[row, 0])" in made and "S = T.alloc_global" in made and "T.copy(x, s)" in made


def test_a_parameter_is_still_stored() -> None:
    made = fused(SAME.replace("S[", "Y[").replace("        S = T.alloc_global((rows, columns), \"float32\")\n", ""))
    assert "T.copy(x, Y[row, 0])" in made and "T.copy(x, s)" in made


@pytest.mark.parametrize(("old", "new"), [
    ("(48, is_npu=True) as (core, _):\n            s", "(24, is_npu=True) as (core, _):\n            s"),
    ("(48, is_npu=True) as (core, _):\n            s", "(48, is_npu=True) as (other, _):\n            s"),
    ('k = T.alloc_shared((tile, columns), "float32")\n            for i in T.serial(',
     'k = T.alloc_shared((tile, columns), "float32")\n            for i in T.serial(1 * ')])
def test_launches_that_differ_stay_two(old: str, new: str) -> None:
    assert SAME.count(old) == 1
    assert list(fusions(ScriptTree(SAME.replace(old, new), "both"))) == []


def test_three_launches_become_one_and_load_once() -> None:
    launch = '''\
        with T.Kernel(4) as b:
            x = T.alloc_shared((8,), "float32")
            {name} = T.alloc_shared((8,), "float32")
            for i in T.serial(n):
                T.copy(X[b, i], x)
                T.vmul(x, x, {name})
                T.copy({name}, {out}[b, i])
'''
    text = "@tilelang.jit\ndef both(n):\n    @T.prim_func\n    def main(X, A, B, C):\n" + "".join(
        launch.format(name=name, out=out) for name, out in (("p", "A"), ("q", "B"), ("r", "C"))) + "    return main\n"
    made = fused(text)
    assert made.count("T.Kernel") == 1 and made.count("T.copy(X[b, i], x)") == 3, "T.vmul may write to any of its arguments"
    made = fused(text.replace("T.vmul(x, x, p)", "T.copy(x, p)").replace("T.vmul(x, x, q)", "T.copy(x, q)"))
    assert made.count("T.copy(X[b, i], x)") == 1


def test_names_stay_apart_from_those_that_an_earlier_launch_or_another_edit_introduced() -> None:
    launch = """\
        with T.Kernel(n) as b:
            core = T.alloc_shared(({size},), "float32")
            for i in T.serial(4):
                T.copy(X[b, i], core)
                T.copy(core, {out}[b, i])
"""
    text = "@tilelang.jit\ndef both(n):\n    @T.prim_func\n    def main(X, A, B, C):\n" + "".join(
        launch.format(size=size, out=out) for size, out in ((8, "A"), (16, "B"), (32, "C"))) + "    return main\n"
    made = fused(text)
    assert all(f"T.copy({name}, {out}[b, i])" in made for name, out in (("core", "A"), ("core_2", "B"), ("core_3", "C")))
    tree = ScriptTree(text, "both")
    (only,) = fusions(tree)
    blocks = list(launches(tree, SubjectFacts(frozenset(), (24, 48), ())))
    made = tree.edited(only.replacements(1), *(one.replacements(24) for one in blocks))
    assert made.count("T.Kernel(24) as core_2:") == 1 and made.count("T.Persistent([n], 24, core_2)") == 1
    names = [name for name in ("core", "core_2", "core_3", "core_4") if f"    {name} = T.alloc_shared" in made]
    assert names == ["core", "core_3", "core_4"], made
