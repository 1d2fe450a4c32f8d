"""The parts of a script that edits change: which are found, what is tried, and the text that an edit writes."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping

import pytest

pytest.importorskip("libcst", reason="the extra improve is not installed")

from tilelang_npu.runtime.improve.subjects.block_counts import launches
from tilelang_npu.runtime.improve.subjects.loop_stages import loops
from tilelang_npu.runtime.improve.subjects.source_numbers import numbers
from tilelang_npu.runtime.improve.subjects.subject import ScriptTree, Subject, SubjectFacts

FACTS = SubjectFacts(frozenset({"rows"}), (24, 48), (1024, 96))

SCRIPT = '''\
import tilelang
import tilelang.language as T

BLOCK = 64  # of rows
UNUSED = 5


@T.macro
def scaled(x, n):
    for j in T.Parallel(n):
        x[j] = x[j] * 3  # no size


def other(z=7):
    return z


@tilelang.jit
def kernel(rows=512, dtype="float32", tile=8, *, stages=2):
    wide = 128 if dtype == "float32" else 256

    @T.prim_func
    def main(X: T.Tensor((rows, wide), dtype)):
        with T.Kernel(rows // BLOCK, is_npu=True) as (block, _):
            x = T.alloc_shared((tile, wide), dtype)
            # a comment that stays
            for i in T.serial(4):  # of tiles
                T.copy(X[block * BLOCK, 0], x)
                for s in T.Pipelined(2, num_stages=stages):
                    T.copy(x, X[s, 0])
                for r in range(3):
                    scaled(x, 32)

    return main
'''


def edited(tree: ScriptTree, subject: Subject, value: int) -> Mapping[int, tuple[str, str]]:
    """The lines that an edit changes, before and after, by number."""
    before, after = tree.text.splitlines(), tree.edited(subject.replacements(value)).splitlines()
    assert len(before) == len(after)
    return {number: (one.strip(), other.strip()) for number, (one, other) in enumerate(zip(before, after, strict=True), 1)
            if one != other}


def test_numbers_of_the_kernel_and_no_others() -> None:
    found = {one.name: one.original for one in numbers(ScriptTree(SCRIPT, "kernel"), FACTS)}
    assert found == {"tile": 8, "stages": 2, "BLOCK": 64, "wide": 128, "wide#2": 256, "'32'": 32}


def test_a_number_is_replaced_where_it_is_written_and_comments_stay() -> None:
    tree = ScriptTree(SCRIPT, "kernel")
    by_name = {one.name: one for one in numbers(tree, FACTS)}
    assert edited(tree, by_name["BLOCK"], 32) == {4: ("BLOCK = 64  # of rows", "BLOCK = 32  # of rows")}
    assert list(edited(tree, by_name["wide#2"], 512)) == [20]
    assert edited(tree, by_name["tile"], 16)[19][1].endswith('tile=16, *, stages=2):')


def test_values_of_a_number() -> None:
    by_name = {one.name: one for one in numbers(ScriptTree(SCRIPT, "kernel"), FACTS)}
    large = [step.value for step in by_name["tile"].steps(8) if not step.fine]
    every = [step.value for step in by_name["tile"].steps(8)]
    assert large == [16, 4]
    assert {32, 2, 12, 64} <= set(every) and 8 not in every and min(every) > 0
    assert {24, 48, 128, 32} == {step.value for step in by_name["BLOCK"].steps(64) if not step.fine}, "blocks for each core"
    assert [step.value for step in by_name["stages"].steps(2)] == [1, 3, 4], "of no loop more than four"


def test_loops_with_copies_are_pipelined() -> None:
    tree = ScriptTree(SCRIPT, "kernel")
    (only,) = loops(tree)  # num_stages of the second is a variable, the third has no copy
    assert edited(tree, only, 2) == {
        27: ("for i in T.serial(4):  # of tiles", "for i in T.Pipelined(4, num_stages=2):  # of tiles")}
    assert [step.value for step in only.steps(0)] == [2, 3, 4]


@pytest.mark.parametrize(("before", "after"), [
    ("range(n)", "T.Pipelined(n, num_stages=3)"), ("T.serial(1, n)", "T.Pipelined(1, n, num_stages=3)"),
    ("T.Pipelined(n)", "T.Pipelined(n, num_stages=3)"), ("T.Pipelined(n, num_stages=1)", "T.Pipelined(n, num_stages=3)")])
def test_forms_of_a_loop(before: str, after: str) -> None:
    text = f"def f(n):\n    with T.Kernel(1) as b:\n        for i in {before}:\n            T.copy(a, b)\n"
    tree = ScriptTree(text, "f")
    (only,) = loops(tree)
    assert tree.edited(only.replacements(3)) == text.replace(before, after)


@pytest.mark.parametrize("loop", ["T.serial(0, n, 2)", "T.Pipelined(n, num_stages=s)", "T.unroll(n)", "T.Parallel(n)", "items"])
def test_loops_that_stay(loop: str) -> None:
    text = f"def f(n, s):\n    with T.Kernel(1) as b:\n        for i in {loop}:\n            T.copy(a, b)\n"
    assert list(loops(ScriptTree(text, "f"))) == []


def test_one_block_for_each_core() -> None:
    text = textwrap.dedent('''\
        def f(m, n):
            with T.Kernel(T.ceildiv(m, 64), n, threads=128) as (bx, by):  # tiles
                a = T.alloc_shared((64, 64), "float16")
                # first
                T.copy(A[bx * 64, by], a)
                T.copy(a, B[bx * 64, by])
        ''')
    tree = ScriptTree(text, "f")
    (only,) = launches(tree, FACTS)
    assert tree.edited(only.replacements(24)) == textwrap.dedent('''\
        def f(m, n):
            with T.Kernel(24, threads=128) as core:  # tiles
                a = T.alloc_shared((64, 64), "float16")
                for bx, by in T.Persistent([T.ceildiv(m, 64), n], 24, core):
                    # first
                    T.copy(A[bx * 64, by], a)
                    T.copy(a, B[bx * 64, by])
        ''')
    assert [step.value for step in only.steps(0)] == [24, 48]
    assert tree.edited(only.replacements(0)) == text


def test_a_name_that_is_taken_is_not_taken_again() -> None:
    text = "def f(n):\n    core = 3\n    with T.Kernel(n, is_npu=True) as (b, v):\n        T.copy(A[b], B[core])\n"
    tree = ScriptTree(text, "f")
    (only,) = launches(tree, FACTS)
    assert "as (core_2, v):" in tree.edited(only.replacements(48))


def test_one_block_becomes_several() -> None:
    text = textwrap.dedent('''\
        def f(n):
            with T.Kernel(1, is_npu=True) as (_, _):
                for i in T.serial(T.ceildiv(n, 8)):
                    T.copy(A[i * 8], B[i * 8])
        ''')
    tree = ScriptTree(text, "f")
    (only,) = launches(tree, FACTS)
    assert tree.edited(only.replacements(48)) == textwrap.dedent('''\
        def f(n):
            with T.Kernel(48, is_npu=True) as (core, _):
                for i_own in T.serial((T.ceildiv(n, 8) - core + 47) // 48):
                    i = i_own * 48 + core
                    T.copy(A[i * 8], B[i * 8])
        ''')


@pytest.mark.parametrize("head", [
    "T.Kernel(n) as b:\n        T.use_swizzle(4)", "T.Kernel(n) as b:\n        with T.Scope('V'):\n            pass",
    "T.Kernel(n) as b:\n        for i in T.Persistent([n], 24, b):\n            pass", "T.Kernel(n):\n        pass",
    "T.Kernel(n, m) as b:\n        pass", "T.Kernel(n) as (b, v, w):\n        pass"])
def test_launches_that_stay(head: str) -> None:
    assert list(launches(ScriptTree(f"def f(n, m):\n    with {head}\n", "f"), FACTS)) == []


def test_a_script_without_the_factory_has_nothing_to_edit() -> None:
    tree = ScriptTree(SCRIPT, "absent")
    assert [*numbers(tree, FACTS), *loops(tree), *launches(tree, FACTS)] == []
