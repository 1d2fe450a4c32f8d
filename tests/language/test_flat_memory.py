"""Operations that are given a number of elements: flat memory from the first element of an operand on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
from tilelang_npu import TileError
from tilelang_npu.frontend import trace

SYNC = {tilelang.PassConfigKey.TL_ASCEND_AUTO_SYNC: True}
ROWS = """
    import tilelang_npu.language as T

    @T.prim_func
    def main(A: T.Tensor((6, 16), "float32"), B: T.Tensor((6, 16), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            a = T.alloc_ub((6, 16), "float32")
            b = T.alloc_ub((6, 16), "float32")
            if vid == 0:
                T.copy(A, a)
                T.tile.fill(b, -9)
                {statement}
                T.copy(b, B)
"""


def result(source: Any, statement: str, a: np.ndarray) -> np.ndarray:
    main = source(ROWS.replace("{statement}", statement.replace("\n", "\n                "))).main
    made = tilelang.compile(main, out_idx=[1], target="ascendc", pass_configs=SYNC)(a)
    assert isinstance(made, np.ndarray)
    return made


@pytest.mark.parametrize(("statement", "first", "count"), [
    ("T.tile.clamp(b, a, -1, 1, 96)", 0, 96),
    ("T.tile.clamp(b, a, -1, 1, 48)", 0, 48),  # whole rows
    ("T.tile.clamp(b, a, -1, 1, 37)", 0, 37),
    ("T.tile.clamp(b[2, :], a[2, :], -1, 1, 16)", 32, 16),
    ("T.tile.clamp(b[2, :], a[2, :], -1, 1, 7)", 32, 7),
    ("T.tile.clamp(b[2, :], a[2, :], -1, 1, 40)", 32, 40),  # over the end of the row
    ("T.tile.clamp(b[2, 3], a[2, 3], -1, 1, 40)", 35, 40),
])
def test_a_count_is_of_flat_memory(source: Any, rng: np.random.Generator, statement: str, first: int, count: int) -> None:
    a = rng.standard_normal((6, 16)).astype(np.float32) * 3
    expected = np.full(96, -9, np.float32)
    expected[first:first + count] = np.clip(a.reshape(-1)[first:first + count], -1, 1)
    np.testing.assert_array_equal(result(source, statement, a).reshape(-1), expected)


def test_a_count_over_the_end_of_the_buffer_stops_there_with_a_warning(source: Any, rng: np.random.Generator) -> None:
    a = rng.standard_normal((6, 16)).astype(np.float32) * 3
    with pytest.warns(tilelang.TileWarning, match=r"T113: T.tile.clamp: count is 50, .* on b .* has 32, a .* has 32;"):
        made = result(source, "T.tile.clamp(b[4, :], a[4, :], -1, 1, 50)", a)
    np.testing.assert_array_equal(made, np.concatenate([np.full((4, 16), -9, np.float32), np.clip(a[4:], -1, 1)]))


def test_a_count_from_a_row_that_only_run_time_knows(source: Any, rng: np.random.Generator) -> None:
    a = rng.standard_normal((6, 16)).astype(np.float32) * 3
    with pytest.warns(tilelang.TileWarning, match="may have fewer"):
        made = result(source, "for i in T.serial(6):\n    T.tile.clamp(b[i, :], a[i, :], -1, 1, 40)", a)
    np.testing.assert_array_equal(made, np.clip(a, -1, 1))


def test_a_count_that_surely_fits_warns_of_nothing(source: Any) -> None:
    statement = "for i in T.serial(4):\n    T.tile.clamp(b[i, :], a[i, :], -1, 1, 40)"
    main = source(ROWS.replace("{statement}", statement.replace("\n", "\n                "))).main
    assert trace(main, dialect="ascendc").remarks == ()


@pytest.mark.parametrize(("statement", "expected"), [
    ("T.tile.sub_experiment(b, a, a, 20)", lambda a: a - a),
    ("T.tile.abs_experiment(b, a, 20)", np.abs),
    ("T.tile.mins_experiment(b, a, 0.5, 20)", lambda a: np.minimum(a, 0.5)),
])
def test_operations_on_the_first_elements(source: Any, rng: np.random.Generator, statement: str, expected: Any) -> None:
    a = rng.standard_normal((6, 16)).astype(np.float32)
    made = result(source, statement, a).reshape(-1)
    np.testing.assert_array_equal(made[:20], expected(a.reshape(-1)[:20]).astype(np.float32))
    assert (made[20:] == -9).all()


LONGER = """
    import tilelang_npu.language as T

    @T.prim_func
    def main(A: T.Tensor((40,), "KIND"), L: T.Tensor((72,), "KIND"), B: T.Tensor((40,), "KIND")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            a, longer, b = T.alloc_ub((40,), "KIND"), T.alloc_ub((72,), "KIND"), T.alloc_ub((40,), "KIND")
            if vid == 0:
                T.copy(A, a)
                T.copy(L, longer)
                T.tile.add(b, a, longer)
                T.copy(b, B)
"""


@pytest.mark.parametrize("kind", ["float16", "float32", "int16", "int32"])
def test_of_a_second_input_that_is_longer_the_first_elements_count(source: Any, rng: np.random.Generator, kind: str) -> None:
    a, longer = rng.integers(-50, 50, 40).astype(kind), rng.integers(-50, 50, 72).astype(kind)
    main = source(LONGER.replace("KIND", kind)).main
    with pytest.warns(tilelang.TileWarning, match=r"T113: T.tile.add: longer \[72\] .* has 72 elements, the destination 40; "
                                                  r"the elements after the first 40 are ignored; pass longer\[0:40\]"):
        kernel = tilelang.compile(main, out_idx=[2], target="ascendc")
    np.testing.assert_array_equal(kernel(a, longer), a + longer[:40])
    np.testing.assert_array_equal(kernel.interpret(a, longer), a + longer[:40])


@pytest.mark.parametrize("statement", [
    "T.tile.add(b, longer, a)", "T.tile.add(b, a, longer[0:72])", "T.tile.add(longer, a, a)"])
def test_other_operands_have_the_size_of_the_destination(source: Any, statement: str) -> None:
    text = LONGER.replace("KIND", "float32").replace("T.tile.add(b, a, longer)", statement)
    with pytest.raises(TileError, match="T111"):
        trace(source(text).main, dialect="ascendc")


@pytest.mark.parametrize("count", [1, 16, 37, 96])
def test_sum_of_the_first_elements(source: Any, rng: np.random.Generator, count: int) -> None:
    a = rng.standard_normal((6, 16)).astype(np.float32)
    made = result(source, f"T.tile.reduce_sum_experiment(b, a, {count})", a).reshape(-1)
    np.testing.assert_allclose(made[0], a.reshape(-1)[:count].sum(), rtol=1e-5)
    assert (made[1:] == -9).all()


COUNTED = """
    import tilelang_npu.language as T

    @T.prim_func
    def main(A: T.Tensor((6, COLUMNS), "KIND"), N: T.Tensor((1,), "int32"), B: T.Tensor((6, COLUMNS), "KIND")):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            a = T.alloc_ub((6, COLUMNS), "KIND")
            b = T.alloc_ub((6, COLUMNS), "KIND")
            if vid == 0:
                n = N[0]
                T.copy(A, a)
                T.tile.fill(b, 9)
                {statement}
                T.copy(b, B)
"""


@pytest.mark.parametrize("kind", ["float32", "float16", "int32"])
@pytest.mark.parametrize("columns", [16, 30])
@pytest.mark.parametrize(("statement", "row", "column", "expected"), [
    ("T.tile.fill(b[0, 0:n], 1)", 0, 0, lambda a: np.ones_like(a)),
    ("T.tile.fill(b[2, 3:3 + n], 1)", 2, 3, lambda a: np.ones_like(a)),
    ("T.tile.fill(b[2, 3:3 + n], a[0, 0])", 2, 3, lambda a: np.full_like(a, 1)),
    ("T.tile.clear(b[1, 0:n])", 1, 0, lambda a: np.zeros_like(a)),
    ("T.tile.add(b[1, 8:8 + n], a[1, 8:8 + n], a[1, 8:8 + n])", 1, 8, lambda a: a + a),
    ("T.tile.add(b[1, 8:8 + n], a[1, 8:8 + n], 2)", 1, 8, lambda a: a + 2),
    ("T.copy(a, b)\nT.tile.mul(b[1, 0:n], b[1, 0:n], b[1, 0:n])", 1, 0, lambda a: a * a),
])
def test_a_slice_of_run_time_length_goes_on_in_the_next_rows(
        source: Any, kind: str, columns: int, statement: str, row: int, column: int, expected: Any) -> None:
    text = COUNTED.replace("KIND", kind).replace("COLUMNS", str(columns))
    main = source(text.replace("{statement}", statement.replace("\n", "\n                "))).main
    kernel = tilelang.compile(main, out_idx=[2], target="ascendc", pass_configs=SYNC)
    a = (np.arange(6 * columns) % 7 + 1).reshape(6, columns).astype(kind)
    start = row * columns + column
    for count in (1, columns - column, columns, 2 * columns + 5, 6 * columns - start):
        made = (a if "T.copy(a, b)" in statement else np.full_like(a, 9)).reshape(-1).copy()
        made[start:start + count] = expected(a.reshape(-1)[start:start + count])
        np.testing.assert_array_equal(kernel(a, np.array([count], np.int32)).reshape(-1), made)
    with pytest.raises(TileError, match=rf"T502.*, which has 0\.\.{6 * columns - 1}"):
        kernel(a, np.array([6 * columns - start + 1], np.int32))


def test_a_slice_that_surely_ends_in_its_row_is_no_flat_memory(source: Any) -> None:
    for length, flat in (("T.min(16, 20 - i)", False), ("T.min(17, 20 - i)", True)):
        statement = f"for i in T.serial(6):\n    T.tile.fill(b[i, 0:{length}], 1)"
        main = source(ROWS.replace("{statement}", statement.replace("\n", "\n                "))).main
        assert ("tile.view" in str(trace(main, dialect="ascendc").module)) == flat


def test_fractals_have_no_other_shape(source: Any) -> None:
    module = source("""
        import tilelang_npu.language as T

        @T.prim_func
        def main(A: T.Tensor((16, 64), "float16"), C: T.Tensor((64, 64), "float32")):
            with T.Kernel(1, is_npu=True) as (cid, vid):
                a = T.alloc_L1((16, 64), "float16")
                c = T.alloc_L0C((64, 64), "float32")
                T.copy(A, a)
                wide = T.reshape(a, (64, 16))
                T.gemm_v0(wide, a, c, init=True)
                T.copy(c, C)
    """)
    with pytest.raises(TileError, match=r"a cannot be viewed with shape \[64, 16\] without moving data") as caught:
        tilelang.compile(module.main, target="ascendc", pass_configs={"tl.ascend_auto_sync": True})
    where = caught.value.location
    assert caught.value.code == "T292"
    assert where is not None
    assert (where.line, where.column) == (10, 16)
