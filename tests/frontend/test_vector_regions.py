"""The bodies of vector functions: what becomes a function of registers, what is moved out of it, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from simulator.register_kernels import assert_results, text_of
from tilelang_npu import TileError
from tilelang_npu.frontend import trace

A = np.arange(64, dtype=np.float32)
GIVEN, MADE = {"A": A}, {"R": np.zeros(64, np.float32)}


def ops_of(source: Any, statements: str, **options: str) -> list[str]:
    module = trace(source(text_of(statements, GIVEN, MADE, **options)).main, dialect="npuir").module
    module.verify()
    return [op.name for op in module.walk() if op.name.startswith("tile.") and op.name != "tile.launch"]


@pytest.mark.parametrize("frame", ["T.SimdVF()", "T.SimdVF(lanes=128)", "T.SimtVF(threads=128)", "T.SimtVF([8, 16])"])
def test_operations_on_tiles_alone_are_those_of_the_kernel(source: Any, frame: str) -> None:
    statements = """
        f = T.alloc_frag((64,), "float32")
        T.copy(a, f)
        T.vadd(f, 1.0, f)
        T.copy(f, r)
    """
    assert "tile.vector_function" not in ops_of(source, statements, frame=frame)
    assert_results(source, statements, GIVEN, {"R": A + 1}, frame=frame)


def test_a_loop_over_elements_is_one_of_the_kernel(source: Any) -> None:
    assert_results(source, """
        for i in T.Parallel(64):
            r[i] = a[i] * 3.0
    """, GIVEN, {"R": A * 3})


def test_allocations_and_elements_are_outside_of_the_function(source: Any) -> None:
    """An element of a buffer is read before the function begins."""
    statements = """
        m = T.vmi.create_mask(64, size=64)
        t = T.alloc_ub((64,), "float32")
        x = T.vmi.vmuls(T.vmi.vload(a[0], size=64), a[3], m)
        T.vmi.vstore(x, t[0])
        T.vmi.vstore(T.vmi.vload(t[0], size=64), r[0])
    """
    names = ops_of(source, statements)
    assert names.count("tile.vector_function") == 1
    assert names.index("tile.vector_function") > max(place for place, name in enumerate(names) if name == "tile.alloc")
    assert_results(source, statements, GIVEN, {"R": A * 3})


def test_a_buffer_that_is_read_and_written_is_an_output(source: Any) -> None:
    assert_results(source, """
        m = T.vmi.create_mask(10, size=64)
        T.vmi.vstore(T.vmi.vadds(T.vmi.vload(r[0], size=64), 1, m), r[0], m)
    """, {}, {"R": np.concatenate([np.full(10, 2, np.float32), np.ones(54, np.float32)])})


def test_a_function_in_a_loop_is_one_op(source: Any) -> None:
    text = text_of("T.vmi.vstore(T.vmi.vload(a[0], size=64), r[0])", GIVEN, MADE, around="for k in T.serial(2):")
    module = trace(source(text).main, dialect="npuir").module
    assert sum(op.name == "tile.vector_function" for op in module.walk()) == 1


MIXED = {
    "T.vadd(a, a, a)": "operations on registers and an operation on tiles",
    "r[3] = 1.0": "stores a single element",
    "x = T.vmi.vmuls(x, r[3], m)": "reads a single element that depends on the function itself",
    "for i in T.serial(4): T.vmi.vstore(T.vmi.vmuls(x, a[i], m), r[0])": "reads a single element that depends",
}


@pytest.mark.parametrize("statement", MIXED)
def test_a_function_of_registers_cannot_contain(source: Any, statement: str) -> None:
    with pytest.raises(TileError, match=MIXED[statement]) as caught:
        ops_of(source, f"""
            m = T.vmi.create_mask(64, size=64)
            x = T.vmi.vload(a[0], size=64)
            T.vmi.vstore(x, r[0])
            {statement}
        """)
    assert caught.value.code == "T141"
    assert caught.value.location is not None


@pytest.mark.parametrize("frame", ["T.SimdVF(lanes=0)", 'T.SimdVF(latency="long")', "T.SimtVF(threads=[1, 2, 3, 4])"])
def test_an_argument_of_the_frame_must_be_a_number(source: Any, frame: str) -> None:
    with pytest.raises(TileError) as caught:
        ops_of(source, "T.copy(a, r)", frame=frame)
    assert caught.value.code == "T150"


def test_a_function_in_a_function_is_refused(source: Any) -> None:
    with pytest.raises(TileError) as caught:
        ops_of(source, """
            with T.SimdVF():
                T.vmi.vstore(T.vmi.vload(a[0], size=64), r[0])
        """)
    assert caught.value.code == "T141"
