"""Loops over rows done at once: the values of NumPy, and of the rows one by one, bit by bit."""

from __future__ import annotations

import linecache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tilelang_npu as tilelang
import tilelang_npu.language as T

NAME = "collapse-rows"
STATEMENTS = {
    "T.vmul(x[r, 0:{c}], s[r], x[r, 0:{c}])": lambda x, y, s, t: (x * s[:, None], y),
    "T.vsub(s[r], x[r, 0:{c}], y[r, 0:{c}])": lambda x, y, s, t: (x, s[:, None] - x),
    "T.vadd(y[r, 0:{c}], t[r, 0], x[r, 0:{c}])": lambda x, y, s, t: (y + t[:, None], y),
    "T.vmax(x[r, 0:{c}], y[r, 0:{c}], y[r, 0:{c}])": lambda x, y, s, t: (x, np.maximum(x, y)),
    "T.vmin(y[r, 0:{c}], 3, x[r, 0:{c}])": lambda x, y, s, t: (np.minimum(y, y.dtype.type(3)), y),
    "T.vabs(x[r:r + 1, 0:{c}], x[r:r + 1, 0:{c}])": lambda x, y, s, t: (np.abs(x), y),
}
"""The body of a loop over r, on row r of x and y and element r of s and t."""


def kernel_of(rows: int, columns: int, dtype: str, statements: list[str]) -> Any:
    """The kernel: all rows of X and Y, with S and T."""
    body = "".join(f"                {each.format(c=columns)}\n" for each in statements)
    text = f"""
def make(T):
    @T.prim_func
    def main(X: T.Tensor(({rows}, {columns}), "{dtype}"), Y: T.Tensor(({rows}, {columns}), "{dtype}"),
             S: T.Tensor(({rows},), "{dtype}"), U: T.Tensor(({rows}, 1), "{dtype}")):
        with T.Kernel(1, is_npu=True) as (cid, _):
            x = T.alloc_shared(({rows}, {columns}), "{dtype}")
            y = T.alloc_shared(({rows}, {columns}), "{dtype}")
            s = T.alloc_shared(({rows},), "{dtype}")
            t = T.alloc_shared(({rows}, 1), "{dtype}")
            T.copy(X, x)
            T.copy(Y, y)
            T.copy(S, s)
            T.copy(U, t)
            for r in T.serial({rows}):
{body}            T.copy(x, X)
            T.copy(y, Y)
    return main
"""
    name = f"<rows {hash(text)}>"
    linecache.cache[name] = len(text), None, text.splitlines(keepends=True), name
    scope: dict[str, Any] = {}
    exec(compile(text, name, "exec"), scope)
    return scope["make"](T)


@settings(max_examples=25, deadline=None)
@given(rows=st.integers(2, 20), blocks=st.integers(1, 9), dtype=st.sampled_from(["float32", "float16", "int32"]),
       statements=st.lists(st.sampled_from(list(STATEMENTS)), min_size=1, max_size=3), seed=st.integers(0, 99))
def test_as_one_by_one(rows: int, blocks: int, dtype: str, statements: list[str], seed: int) -> None:
    columns = blocks * (16 if dtype == "float16" else 8)
    rng = np.random.default_rng(seed)
    arrays = [rng.integers(-9, 9, shape).astype(dtype) for shape in ((rows, columns), (rows, columns), (rows,), (rows, 1))]
    x, y, s, t = arrays
    with np.errstate(over="ignore", invalid="ignore"):
        for each in statements:
            x, y = STATEMENTS[each](x, y, s, t[:, 0])
    func = kernel_of(rows, columns, dtype, statements)
    for off in ([], [NAME]):
        kernel = tilelang.compile(func, target="npuir", sanitize=True, pass_configs={"tl.disable": off})
        found = [array.copy() for array in arrays]
        kernel(*found)
        np.testing.assert_array_equal(found[0], x)
        np.testing.assert_array_equal(found[1], y)
        if not off:
            assert [one.text for one in kernel.explain().remarks if one.about == NAME and "rows of" in one.text] == [
                f"the {rows} rows of {'y' if statements[0].endswith('y[r, 0:{c}])') else 'x'} are processed at once, "
                "without a loop"]




def test_rows_that_begin_anywhere_stay() -> None:
    kernel = tilelang.compile(kernel_of(4, 10, "float32", ["T.vmul(x[r, 0:10], s[r], x[r, 0:10])"]), target="npuir")
    (one,) = (one for one in kernel.explain().refused if one.about == NAME)
    assert "rows of x begin 40 bytes apart" in one.text and one.edit == "give x rows of a multiple of 8 elements"
    x, s = np.ones((4, 10), np.float32), np.arange(4, dtype=np.float32)
    kernel(x, x.copy(), s, np.ones((4, 1), np.float32))
    np.testing.assert_array_equal(x, np.repeat(s[:, None], 10, axis=1))


def test_elements_apart_stay() -> None:
    kernel = tilelang.compile(kernel_of(4, 16, "float32", ["T.vmul(x[r, 0:16], y[r, 3], x[r, 0:16])"]), target="npuir")
    (one,) = (one for one in kernel.explain().refused if one.about == NAME)
    assert "the elements of y are not contiguous" in one.text
    assert one.edit == "let y have one element for each row, in consecutive elements"


@pytest.mark.parametrize("statement", [
    "T.vmul(x[r, 0:16], x[0, r], x[r, 0:16])", "T.vadd(x[r, 0:16], x[3 - r, 0:16], x[r, 0:16])",
    "T.vadd(x[r:r + 1, 0:16], y[2:3, 0:16], x[r:r + 1, 0:16])"])
def test_what_reads_other_rows_stays(statement: str) -> None:
    kernel = tilelang.compile(kernel_of(4, 16, "float32", [statement]), target="npuir", sanitize=True)
    assert not [one for one in kernel.explain().remarks if one.about == NAME and "at once" in one.text]
    x = np.arange(1, 65, dtype=np.float32).reshape(4, 16)
    expected, y = x.copy(), x + 5
    for r in range(4):
        expected[r] = (expected[r] * expected[0, r] if "vmul" in statement else expected[r] + y[2] if "y" in statement
                       else expected[r] + expected[3 - r])
    kernel(x, y, np.ones(4, np.float32), np.ones((4, 1), np.float32))
    np.testing.assert_array_equal(x, expected)


@pytest.mark.parametrize(("rows", "fits"), [(100, True), (260, True), (360, False)])
def test_room_for_what_is_spread(rows: int, fits: bool) -> None:
    """The scratch must fit next to the live buffers: if buffers share bytes, a trial plan decides."""
    @T.prim_func
    def main(X: T.Tensor((rows, 64), "float32"), S: T.Tensor((rows,), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, _):
            a = T.alloc_shared((rows, 64), "float32")
            b = T.alloc_shared((rows, 64), "float32")
            c = T.alloc_shared((rows, 64), "float32")
            s = T.alloc_shared((rows,), "float32")
            T.copy(S, s)
            T.copy(X, a)
            T.vexp(a, b)
            T.copy(b, X)
            T.copy(X, c)
            for r in T.serial(rows):
                T.vmul(c[r, 0:64], s[r], c[r, 0:64])
            T.vadd(c, b, c)
            T.copy(c, X)

    kernel = tilelang.compile(main, target="npuir")
    (one,) = (one for one in kernel.explain().remarks if one.about == NAME)
    assert ("at once" in one.text) == fits
    if not fits:
        assert "takes 11 520 bytes of scratch" in one.text and one.edit.startswith("shrink the tiles to ")
    x, s = np.linspace(-1, 1, rows * 64, dtype=np.float32).reshape(rows, 64), np.arange(rows, dtype=np.float32)
    expected = np.exp(x) * s[:, None] + np.exp(x)
    kernel(x, s)
    np.testing.assert_allclose(x, expected, rtol=1e-6)


def test_rows_outside_of_a_buffer_are_reported_one_by_one() -> None:
    kernel = tilelang.compile(kernel_of(4, 16, "float32", ["T.vmul(x[r + 1, 0:16], s[r], x[r + 1, 0:16])"]), target="npuir")
    x = np.ones((4, 16), np.float32)
    with pytest.raises(tilelang.TileError, match=r"takes 4\.\.4 of axis 0 of x, which has 0\.\.3"):
        kernel(x, x.copy(), np.ones(4, np.float32), np.ones((4, 1), np.float32))


def test_columns_are_no_rows() -> None:
    """A column has elements of all rows: there is no refusal, since the author cannot change that."""
    kernel = tilelang.compile(kernel_of(4, 16, "float32", ["T.vmul(x[0:4, r:r + 1], 2, x[0:4, r:r + 1])"]), target="npuir")
    assert not [one for one in kernel.explain().remarks if one.about == NAME]
    x = np.ones((4, 16), np.float32)
    kernel(x, x.copy(), np.ones(4, np.float32), np.ones((4, 1), np.float32))
    np.testing.assert_array_equal(x, np.where(np.arange(16) < 4, 2, 1) * np.ones((4, 1)))


@pytest.mark.parametrize("shift", [0, -2, 2])
def test_a_loop_that_begins_at_another_row(shift: int) -> None:
    """Rows of the iteration and rows at a distance, all of which are inside the buffer."""
    @T.prim_func
    def main(X: T.Tensor((8, 16), "float32"), Y: T.Tensor((8, 16), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, _):
            x = T.alloc_shared((8, 16), "float32")
            y = T.alloc_shared((8, 16), "float32")
            T.copy(X, x)
            T.copy(Y, y)
            for r in T.serial(2, 6):
                T.vadd(x[r + shift, 0:16], y[r, 0:16], x[r + shift, 0:16])
            T.copy(x, X)

    kernel = tilelang.compile(main, target="npuir")
    x = np.arange(128, dtype=np.float32).reshape(8, 16)
    y = 3 * x + 1
    expected = x.copy()
    expected[2 + shift:6 + shift] += y[2:6]
    kernel(x, y)
    np.testing.assert_array_equal(x, expected)
    assert kernel.mlir().count("hivm.hir.vadd") == 1 and "scf.for" not in kernel.mlir()
