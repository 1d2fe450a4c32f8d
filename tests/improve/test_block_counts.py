"""Edits of launches: which launches are found, which edits are tried, and the written text."""

from __future__ import annotations

import textwrap

import pytest

pytest.importorskip("libcst", reason="the extra improve is not installed")

from improve.scripts import EDITABLE, FACTS
from tilelang_npu.runtime.improve.subjects.block_counts import launches
from tilelang_npu.runtime.improve.subjects.subject import ScriptTree


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


def test_the_order_of_the_blocks_goes_with_them() -> None:
    text = textwrap.dedent('''\
        def f(m, n):
            with T.Kernel(m, n, threads=128) as (bx, by):
                a = T.alloc_shared((64, 64), "float16")
                T.use_swizzle(panel_size=10)
                T.copy(A[bx * 64, by * 64], a)
        ''')
    (only,) = launches(tree := ScriptTree(text, "f"), FACTS)
    assert tree.edited(only.replacements(24)) == textwrap.dedent('''\
        def f(m, n):
            with T.Kernel(24, threads=128) as core:
                a = T.alloc_shared((64, 64), "float16")
                for bx, by in T.Persistent([m, n], 24, core):
                    T.copy(A[bx * 64, by * 64], a)
        ''')
    assert "use_swizzle" in tree.edited(only.replacements(0))


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
    "T.Kernel(n) as b:\n        if n:\n            T.use_swizzle(4)",
    "T.Kernel(n) as b:\n        with T.Scope('V'):\n            pass",
    "T.Kernel(n) as b:\n        for i in T.Persistent([n], 24, b):\n            pass", "T.Kernel(n):\n        pass",
    "T.Kernel(n, m) as b:\n        pass", "T.Kernel(n) as (b, v, w):\n        pass"])
def test_launches_that_stay(head: str) -> None:
    assert list(launches(ScriptTree(f"def f(n, m):\n    with {head}\n", "f"), FACTS)) == []


def test_the_variable_of_the_divided_loop_gets_a_name_that_is_not_taken() -> None:
    text = textwrap.dedent('''\
        def f(n, i_own):
            with T.Kernel(1, is_npu=True) as (b, _):
                for i in T.serial(n):
                    T.copy(A[i * i_own], B[i])
        ''')
    tree = ScriptTree(text, "f")
    (only,) = launches(tree, FACTS)
    assert tree.edited(only.replacements(24)) == textwrap.dedent('''\
        def f(n, i_own):
            with T.Kernel(24, is_npu=True) as (b, _):
                for i_own_2 in T.serial((n - b + 23) // 24):
                    i = i_own_2 * 24 + b
                    T.copy(A[i * i_own], B[i])
        ''')


def test_a_script_without_the_factory_has_no_launches() -> None:
    assert list(launches(ScriptTree(EDITABLE, "absent"), FACTS)) == []
