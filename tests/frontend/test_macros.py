"""Macros and helpers: which are inlined, and which run natively."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import tilelang_npu.language as T
from tilelang_npu import TileError
from tilelang_npu.dialects.text import location_of, parse_module, print_module
from tilelang_npu.frontend import trace

from frontend import macros_elsewhere as elsewhere  # isort: skip


def test_a_macro_of_another_module_with_buffers_expressions_and_python_values(traced: Any) -> None:
    @T.prim_func
    def main(A: T.Tensor((64,), "float32")):
        with T.Kernel(4, is_npu=True) as (cid, vid):
            a = T.alloc_ub((8, 32), "float32")
            elsewhere.scale_rows(a, 8, 0.5)
            elsewhere.scale_rows(rows=cid, target=a[2:6, :], factor=2)

    kernel = traced(main)
    first, second = kernel.ops("tile.elementwise")
    assert first.inputs[1].owner.value.value.data == 1.5
    assert second.inputs[1].owner.value.value.data == 6.0
    assert kernel.ops("scf.for")[1].ub is kernel.only("tile.launch").body.block.args[0]
    place = location_of(first)
    assert place is not None
    assert place.file == elsewhere.__file__
    assert [call.file for call in place.callers] == [__file__]
    kernel.has("arith.addi", "tile.region %a[%2, 0] [1, 32]")


def test_an_op_of_a_macro_has_the_calls_that_lead_there(traced: Any) -> None:
    @T.macro
    def inner(target: Any):
        T.fill(target, 1.0)

    @T.macro
    def outer(target: Any):
        inner(target)
        T.fill(target, 2.0)

    @T.prim_func
    def main(A: T.Tensor((64,), "float32")):
        with T.Kernel(4, is_npu=True) as (cid, vid):
            a = T.alloc_ub((32,), "float32")
            outer(a)
            inner(a)
            T.fill(a, 3.0)

    kernel = traced(main)
    places = [location_of(op) for op in kernel.ops("tile.fill")]
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()

    def texts(number: int) -> list[str]:
        place = places[number]
        assert place is not None
        return [lines[one.line - 1].strip() for one in (place, *place.callers)]

    assert texts(0) == ["T.fill(target, 1.0)", "inner(target)", "outer(a)"]
    assert texts(1) == ["T.fill(target, 2.0)", "outer(a)"]
    assert texts(2) == ["T.fill(target, 1.0)", "inner(a)"]
    assert texts(3) == ["T.fill(a, 3.0)"]
    assert places[0] == places[2], "positions are equal whatever leads there"

    text = print_module(kernel.traced.module, generic=True, locations=True)
    again = [location_of(op) for op in parse_module(text).walk() if op.name == "tile.fill"]
    assert [place.callers for place in again if place is not None] == [place.callers for place in places if place is not None]


def test_macros_nest_and_see_the_factory(traced: Any) -> None:
    width = 16

    @T.macro
    def inner(target: Any, value: T.int32):
        T.fill(target, value)

    @T.macro(hygienic=True)
    def outer(target: T.Tensor, start: Any = 1):
        tile = target[start, 0:width]
        inner(tile, width)

    @T.prim_func
    def main(A: T.Tensor((64,), "int32")):
        with T.Kernel(4, is_npu=True) as (cid, vid):
            a = T.alloc_ub((8, 32), "int32")
            outer(a)
            outer(a, cid)

    kernel = traced(main)
    kernel.has("tile.region %a[1, 0] [1, 16] keep [1]", "tile.fill %c16_i32", "tile.region %a[%cid, 0]", "tile.fill")


def test_names_of_a_macro_are_its_own(traced: Any) -> None:
    @T.macro
    def uses(target: Any):
        x = 7
        T.fill(target, x)

    @T.prim_func
    def main(A: T.Tensor((64,), "int32")):
        with T.Kernel(4, is_npu=True) as (cid, vid):
            a = T.alloc_ub((32,), "int32")
            x = 3
            uses(a)
            T.fill(a, x)

    traced(main).has("tile.fill %c7_i32", "tile.fill %c3_i32")


def test_a_macro_that_is_not_hygienic_sees_its_caller(source: Any, traced: Any) -> None:
    text = """
        import tilelang_npu.language as T

        where = "module"

        @T.macro(hygienic=FLAG)
        def uses(target):
            T.fill(target, len(where))

        @T.prim_func
        def main(A: T.Tensor((64,), "int32")):
            with T.Kernel(4, is_npu=True) as (cid, vid):
                a = T.alloc_ub((32,), "int32")
                where = "call"
                uses(a)
    """
    traced(source(text.replace("FLAG", "True")).main).has("tile.fill %c6_i32")
    traced(source(text.replace("FLAG", "False")).main).has("tile.fill %c4_i32")


def test_a_variable_is_passed_by_reference_and_a_place_as_a_place(traced: Any) -> None:
    @T.macro
    def advance(counter: Any, start: Any, target: Any):
        counter = counter + 1
        T.copy(start, target)

    @T.prim_func
    def main(A: T.Tensor((64, 64), "int32")):
        with T.Kernel(4, is_npu=True) as (cid, vid):
            a = T.alloc_ub((8, 16), "int32")
            n = T.alloc_var("int32", init=0)
            advance(n, A[cid, 16], a)

    traced(main).has("memref.load %n", "memref.store %1, %n", "tile.region %A[%cid, 16] [8, 16]", "tile.copy")


def test_a_macro_returns_its_last_statement(traced: Any) -> None:
    @T.macro
    def rows(size: Any):
        blocks = T.ceildiv(size, 16)
        return blocks, size % 16

    @T.prim_func
    def main(A: T.Tensor((64,), "int32"), n: T.int32):
        with T.Kernel(4, is_npu=True) as (cid, vid):
            a = T.alloc_ub((32,), "int32")
            whole, rest = rows(n)
            T.fill(a, whole + rest)

    traced(main).has("arith.floordivsi", "arith.muli", "arith.subi", "arith.addi", "tile.fill")


def test_plain_helpers_run_natively(traced: Any) -> None:
    def fill_all(buffers: Any, value: Any) -> int:
        for buffer in buffers:
            T.tile.fill(buffer, value)
            buffer[0] = buffer[1] + 1
        T.fill(buffers[0][2:4], 5)
        inner_macro(buffers[0])
        return len(buffers)

    @T.macro
    def inner_macro(target: Any):
        if target[3] > 4:
            target[3] = 0

    operation = getattr(T.tile, "add")  # noqa: B009  (the way of access that is tested)

    @T.prim_func
    def main(A: T.Tensor((64,), "int32")):
        with T.Kernel(4, is_npu=True) as (cid, vid):
            many = [T.alloc_ub((32,), "int32"), T.alloc_ub((32,), "int32")]
            count = fill_all(many, cid)
            operation(many[0], many[0], many[1])
            many[0][5] = count

    kernel = traced(main)
    assert [op.label.data for op in kernel.ops("tile.alloc")] == ["many_0", "many_1"]
    assert len(kernel.ops("tile.fill")) == 3
    assert len(kernel.ops("scf.if")) == 1
    where = kernel.ops("tile.fill")[0].location
    assert "count = fill_all(many, cid)" in Path(where.filename.data).read_text().splitlines()[where.line.data - 1]


def test_an_error_in_a_macro_tells_the_calls(source: Any) -> None:
    @T.prim_func
    def main(A: T.Tensor((64,), "int32")):
        with T.Kernel(4, is_npu=True) as (cid, vid):
            a = T.alloc_ub((8, 32), "int32")
            elsewhere.outer_faulty(a)

    with pytest.raises(TileError) as caught:
        trace(main)
    error = caught.value
    assert error.code == "T112"
    assert error.location.file == elsewhere.__file__
    assert error.location.source().strip() == "T.copy(target, target)"
    inner, outer = error.notes
    assert inner.startswith(f"in the macro 'faulty', called at {elsewhere.__file__}:")
    assert outer.startswith(f"in the macro 'outer_faulty', called at {__file__}:")


@pytest.mark.parametrize(("call", "code", "message"), [
    ("elsewhere.endless(a)", "T141", "macro 'endless' calls itself without an end"),
    ("elsewhere.scale_rows(a)", "T145", "macro scale_rows: missing a required argument: 'rows'"),
    ("main(a)", "T141", "a kernel cannot call the kernel 'main'"),
])
def test_bad_calls(source: Any, call: str, code: str, message: str) -> None:
    module = source(f"""
        import tilelang_npu.language as T
        from frontend import macros_elsewhere as elsewhere

        @T.prim_func
        def main(A: T.Tensor((64,), "int32")):
            with T.Kernel(4, is_npu=True) as (cid, vid):
                a = T.alloc_ub((8, 32), "int32")
                {call}
    """)
    with pytest.raises(TileError, match=message) as caught:
        trace(module.main)
    assert caught.value.code == code


def test_a_macro_on_the_host() -> None:
    with pytest.raises(TileError, match=r"the macro 'faulty' is only usable inside a @T\.prim_func") as caught:
        elsewhere.faulty(3)
    assert caught.value.location.source().strip() == "elsewhere.faulty(3)"


def test_a_recursion_is_reported_in_a_few_lines(source: Any) -> None:
    module = source("""
        import tilelang_npu.language as T
        from frontend import macros_elsewhere as elsewhere

        @T.prim_func
        def main(A: T.Tensor((8, 8), "float32")):
            with T.Kernel(1) as bx:
                a = T.alloc_shared((8, 8), "float32")
                elsewhere.endless(a)
    """)
    with pytest.raises(TileError) as caught:
        trace(module.main)
    notes = caught.value.notes
    assert notes[0] == notes[1]
    assert notes[0].startswith(f"in the macro 'endless', called at {elsewhere.__file__}:")
    assert notes[2] == "... 97 more macros, each called in the next ..."
    assert notes[3].startswith(f"in the macro 'endless', called at {module.__file__}:")
    assert len(notes) == 4
