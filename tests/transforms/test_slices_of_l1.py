"""Slices of L1 buffers with run-time offset or size: only the elements of the slice are accessed, and a slice that exceeds its
buffer is a T502 at its line."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T
from tilelang_npu import TileError
from tilelang_npu.cli import main as command

ROWS, COLUMNS = 64, 96


def written(body: Any, kind: str, columns: int = COLUMNS) -> Any:
    """A kernel that returns the contents of an L1 buffer after ``body``, by a product with the identity."""
    sums = "int32" if kind == "int8" else "float32"

    @T.prim_func
    def main(A: T.Tensor((ROWS, columns), kind), Z: T.Tensor((ROWS, columns), kind), I: T.Tensor((columns, columns), kind),
             N: T.Tensor((4,), "int32"), C: T.Tensor((ROWS, columns), sums)):
        with T.Kernel(1, is_npu=True) as (cid, _):
            a = T.alloc_L1([ROWS, columns], kind)
            b = T.alloc_L1([columns, columns], kind)
            c = T.alloc_L0C([ROWS, columns], sums)
            T.copy(Z, a)
            T.copy(I, b)
            body(A, a, N)
            T.gemm(a, b, c, initC=True)
            T.copy(c, C)

    return tilelang.compile(main, out_idx=[4], target="npuir")


def numbers(shape: tuple[int, int], kind: str, seed: int) -> Any:
    return np.random.default_rng(seed).integers(-8, 8, shape).astype(kind)


@T.macro
def columns_of_any_place_and_size(A: Any, a: Any, N: Any) -> Any:
    start, size = N[0] * 32, N[1]
    T.copy(A[0:ROWS, start:start + size], a[0:ROWS, start:start + size])


@T.macro
def a_tail_that_is_clamped(A: Any, a: Any, N: Any) -> Any:
    for s in T.serial(2):
        start = s * 64
        size = T.min(64, a.shape[1] - start)
        T.copy(A[0:ROWS, start:start + size], a[0:ROWS, start:start + size])


@T.macro
def first_columns(A: Any, a: Any, N: Any) -> Any:
    T.copy(A[0:ROWS, 0:N[1]], a[0:ROWS, 0:N[1]])


@T.macro
def columns_beyond_the_tensor(A: Any, a: Any, N: Any) -> Any:
    start, size = N[0] * 32, N[1]
    T.copy(A[0:ROWS, start:start + size], a[0:ROWS, 0:size])


@T.macro
def rows_of_any_place_and_size(A: Any, a: Any, N: Any) -> Any:
    T.copy(A[N[2]:N[2] + N[3], :], a[N[2]:N[2] + N[3], :])


@T.macro
def eight_rows(A: Any, a: Any, N: Any) -> Any:
    T.copy(A[N[2]:N[2] + 8, :], a[N[2]:N[2] + 8, :])


@T.macro
def rows_and_columns(A: Any, a: Any, N: Any) -> Any:
    start, size = N[0] * 32, N[1]
    T.copy(A[N[2]:N[2] + N[3], start:start + size], a[N[2]:N[2] + N[3], start:start + size])


@T.macro
def filled_rows(A: Any, a: Any, N: Any) -> Any:
    T.fill(a[N[2]:N[2] + N[3], :], 0)


@T.macro
def filled_columns(A: Any, a: Any, N: Any) -> Any:
    start, size = N[0] * 32, N[1] * 32
    T.fill(a[:, start:start + size], 0)


def columns(a: Any, made: Any, c: int, n: int, r: int, m: int) -> None:
    made[:, c * 32:c * 32 + n] = a[:, c * 32:c * 32 + n]


def to_the_front(a: Any, made: Any, c: int, n: int, r: int, m: int) -> None:
    part = a[:, c * 32:c * 32 + n]
    made[:, :n] = 0
    made[:, :part.shape[1]] = part


def block(a: Any, made: Any, c: int, n: int, r: int, m: int) -> None:
    made[r:r + m, c * 32:c * 32 + n] = a[r:r + m, c * 32:c * 32 + n]


def rows(a: Any, made: Any, c: int, n: int, r: int, m: int) -> None:
    made[r:r + m] = a[r:r + m]


LOADS: list[tuple[Any, Callable[..., None], list[tuple[int, int, int, int]], str]] = [
    (columns_of_any_place_and_size, columns, [(0, 96, 0, 0), (1, 32, 0, 0), (1, 40, 0, 0), (2, 5, 0, 0), (2, 0, 0, 0)],
     "takes 64..%d of the columns of a, which has 0..95"),
    (a_tail_that_is_clamped, lambda a, made, *_: made.__setitem__(..., a), [(0, 0, 0, 0)], ""),
    (first_columns, columns, [(0, 96, 0, 0), (0, 33, 0, 0), (0, 1, 0, 0)], ""),
    (columns_beyond_the_tensor, to_the_front, [(0, 96, 0, 0), (2, 32, 0, 0), (2, 64, 0, 0), (3, 32, 0, 0)], ""),
    (rows_of_any_place_and_size, rows, [(0, 0, 0, 64), (0, 0, 3, 5), (0, 0, 60, 4), (0, 0, 17, 0)],
     "takes 60..64 of the rows of a, which has 0..63"),
    (eight_rows, lambda a, made, c, n, r, m: rows(a, made, c, n, r, 8), [(0, 0, 0, 0), (0, 0, 5, 0), (0, 0, 56, 0)],
     "takes 60..67 of the rows of a, which has 0..63"),
    (rows_and_columns, block, [(0, 96, 0, 64), (1, 20, 3, 5), (2, 32, 60, 4)],
     "takes 64..%d of the columns of a, which has 0..95"),
    (filled_rows, lambda a, made, c, n, r, m: made.__setitem__(slice(r, r + m), 0),
     [(0, 0, 0, 64), (0, 0, 3, 5), (0, 0, 60, 4)], "takes 60..64 of the rows of a, which has 0..63"),
    (filled_columns, lambda a, made, c, n, r, m: made.__setitem__((slice(None), slice(c * 32, (c + n) * 32)), 0),
     [(0, 3, 0, 0), (1, 1, 0, 0), (1, 2, 0, 0)], "takes 64..%d of the columns of a, which has 0..95"),
]


@pytest.mark.parametrize("kind", ["float16", "bfloat16", "float32", "int8"])
@pytest.mark.parametrize(("body", "expected", "given", "message"), LOADS, ids=[load[0].__name__ for load in LOADS])
def test_what_is_written_to_a_slice(body: Any, expected: Any, given: Any, message: str, kind: str) -> None:
    kernel = written(body, kind)
    numpy_kind = kernel.params[0].dtype.numpy
    a, z = (numbers((ROWS, COLUMNS), numpy_kind, seed) for seed in (1, 2))
    eye = np.eye(COLUMNS).astype(numpy_kind)
    for numbers_given in given:
        made = z.copy()
        expected(a, made, *numbers_given)
        result = kernel(a, z, eye, np.array(numbers_given, np.int32))
        np.testing.assert_array_equal(result.astype(np.float32), made.astype(np.float32), err_msg=str(numbers_given))
        assert kernel.last_launch.hazards == []
    if message:
        over = (2, 2 if body is filled_columns else 48, 60, 5)
        with pytest.raises(TileError, match="T502") as caught:
            kernel(a, z, eye, np.array(over, np.int32))
        unit = 32 // numpy_kind.itemsize
        assert (message % (-(-112 // unit) * unit - 1 if body is not filled_columns else 127) if "%d" in message
                else message) in caught.value.message
        assert caught.value.location is not None
        assert Path(caught.value.location.file) == Path(__file__)
        assert "a[" in caught.value.location.source()


@pytest.mark.parametrize(("body", "message"), [
    ("T.fill(a[0:64, 0:40], 0)", "64 rows from row 0 on, 40 columns from column 0 on"),
    ("T.fill(a[0:64, 0:n], 0)", r"\(known when it runs\) columns from column 0 on"),
    ("T.copy(A[0:64, n:n + 16], a[0:64, n:n + 16])", r"16 columns from column \(known when it runs\) on"),
])
def test_columns_that_are_no_whole_fractals_are_refused(body: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    path.write_text(f"""
import tilelang_npu.language as T

@T.prim_func
def main(A: T.Tensor((64, 96), "float16"), N: T.Tensor((1,), "int32"), C: T.Tensor((64, 64), "float32")):
    with T.Kernel(1, is_npu=True) as (cid, _):
        a = T.alloc_L1([64, 96], "float16")
        c = T.alloc_L0C([64, 64], "float32")
        n = N[0]
        T.copy(A, a)
        {body}
        T.gemm(a[:, 0:64], a[0:64, 0:64], c, initC=True)
        T.copy(c, C)
""")
    names: dict[str, Any] = {}
    exec(compile(path.read_text(), str(path), "exec"), names)
    with pytest.raises(TileError, match="T221") as caught:
        tilelang.compile(names["main"], target="npuir")
    assert caught.value.location is not None
    assert body in caught.value.location.source()
    assert re.search(message, caught.value.notes[0])


def products(body: Any) -> Any:
    @T.prim_func
    def main(A: T.Tensor((ROWS, COLUMNS), "float16"), B: T.Tensor((COLUMNS, ROWS), "float16"), N: T.Tensor((2,), "int32"),
             C: T.Tensor((ROWS, ROWS), "float32"), D: T.Tensor((ROWS, COLUMNS), "float16")):
        with T.Kernel(1, is_npu=True) as (cid, _):
            a = T.alloc_L1([3, ROWS, COLUMNS], "float16")
            b = T.alloc_L1([COLUMNS, ROWS], "float16")
            c = T.alloc_L0C([ROWS, ROWS], "float32")
            T.copy(B, b)
            for i in T.serial(3):
                T.copy(A, a[i, :, :])
            body(a, b, c, N[0], N[1], C, D)

    return tilelang.compile(main, target="npuir")


@T.macro
def terms(a: Any, b: Any, c: Any, n: Any, m: Any, C: Any, D: Any) -> Any:
    T.gemm(a[1, :, 0:n], b[0:n, :], c, initC=True)
    T.copy(c, C)


@T.macro
def terms_from(a: Any, b: Any, c: Any, n: Any, m: Any, C: Any, D: Any) -> Any:
    T.gemm(a[1, :, n * 16:n * 16 + 32], b[n * 16:n * 16 + 32, :], c, initC=True)
    T.copy(c, C)


@T.macro
def one_of_the_matrices(a: Any, b: Any, c: Any, n: Any, m: Any, C: Any, D: Any) -> Any:
    T.gemm(a[n, :, :], b, c, initC=True)
    T.copy(c, C)


@T.macro
def columns_of_the_sum(a: Any, b: Any, c: Any, n: Any, m: Any, C: Any, D: Any) -> Any:
    T.gemm(a[0, :, :], b, c, initC=True)
    T.copy(c[:, n * 16:n * 16 + m], C[:, n * 16:n * 16 + m])


@T.macro
def rows_of_the_sum(a: Any, b: Any, c: Any, n: Any, m: Any, C: Any, D: Any) -> Any:
    T.gemm(a[0, :, :], b, c, initC=True)
    T.copy(c[n * 16:n * 16 + m, :], C[n * 16:n * 16 + m, :])


@T.macro
def columns_of_l1(a: Any, b: Any, c: Any, n: Any, m: Any, C: Any, D: Any) -> Any:
    T.copy(a[2, :, n * 16:n * 16 + m], D[:, n * 16:n * 16 + m])


READS: list[tuple[Any, Callable[..., Any], list[tuple[int, int]], list[tuple[tuple[int, int], str]]]] = [
    (terms, lambda a, b, n, m: (a[:, :n] @ b[:n], None), [(96, 0), (33, 0), (1, 0)],
     [((97, 0), "T.gemm multiplies k = 97, but its operands have 96 and 96 elements along k")]),
    (terms_from, lambda a, b, n, m: (a[:, n * 16:n * 16 + 32] @ b[n * 16:n * 16 + 32], None), [(0, 0), (4, 0)],
     [((5, 0), "T.gemm takes 80..111 of the columns of a, which has 0..95"),
      ((-1, 0), "T.gemm starts at -16 on the columns of a, which has 0..95")]),
    (one_of_the_matrices, lambda a, b, n, m: (a @ b, None), [(0, 0), (2, 0)],
     [((3, 0), "T.gemm takes 3..3 of axis 0 of a, which has 0..2"),
      ((-1, 0), "T.gemm starts at -1 on axis 0 of a, which has 0..2")]),
    (columns_of_the_sum, lambda a, b, n, m: (part((a @ b), n, m), None), [(0, 64), (1, 20), (3, 16), (2, 0)],
     [((2, 40), "T.copy takes 32..79 of the columns of c, which has 0..63")]),
    (rows_of_the_sum, lambda a, b, n, m: (part((a @ b).T, n, m).T, None), [(0, 64), (1, 20), (3, 16), (2, 0)],
     [((2, 40), "T.copy takes 32..79 of the rows of c, which has 0..63")]),
    (columns_of_l1, lambda a, b, n, m: (None, part(a, n, m)), [(0, 96), (1, 20), (5, 16)],
     [((5, 17), "T.copy takes 80..111 of the columns of a, which has 0..95")]),
]


def part(whole: Any, n: int, m: int) -> Any:
    made = np.zeros_like(whole)
    made[:, n * 16:n * 16 + m] = whole[:, n * 16:n * 16 + m]
    return made


@pytest.mark.parametrize(("body", "expected", "given", "over"), READS, ids=[read[0].__name__ for read in READS])
def test_what_is_read_of_a_slice(body: Any, expected: Any, given: Any, over: Any) -> None:
    kernel = products(body)
    a, b = numbers((ROWS, COLUMNS), "float16", 1), numbers((COLUMNS, ROWS), "float16", 2)
    for n, m in given:
        c, d = np.zeros((ROWS, ROWS), np.float32), np.zeros((ROWS, COLUMNS), np.float16)
        kernel(a, b, np.array([n, m], np.int32), c, d)
        sums, moved = expected(a.astype(np.float32), b.astype(np.float32), n, m)
        np.testing.assert_array_equal(c, 0 if sums is None else sums)
        np.testing.assert_array_equal(d, 0 if moved is None else moved)
    for numbers_given, message in over:
        with pytest.raises(TileError) as caught:
            kernel(a, b, np.array(numbers_given, np.int32), np.zeros_like(c), np.zeros_like(d))
        assert (caught.value.code, caught.value.message) == ("T502", f"{message} in block 0")


def test_many_blocks_are_checked_each(rng: np.random.Generator) -> None:
    blocks = 48

    @T.prim_func
    def main(A: T.Tensor((blocks * 16, 96), "float16"), B: T.Tensor((96, 16), "float16"), N: T.Tensor((blocks,), "int32"),
             C: T.Tensor((blocks * 16, 16), "float32")):
        with T.Kernel(blocks, is_npu=True) as (cid, _):
            a = T.alloc_L1([16, 96], "float16")
            b = T.alloc_L1([96, 16], "float16")
            c = T.alloc_L0C([16, 16], "float32")
            T.copy(A[cid * 16, 0], a)
            T.copy(B, b)
            T.gemm(a[:, 0:N[cid]], b[0:N[cid], :], c, initC=True)
            T.copy(c, C[cid * 16, 0])

    kernel = tilelang.compile(main, out_idx=[3], target="npuir")
    a, b = rng.integers(-4, 4, (blocks * 16, 96)).astype(np.float16), rng.integers(-4, 4, (96, 16)).astype(np.float16)
    counts = rng.integers(1, 97, blocks).astype(np.int32)
    expected = [a[i * 16:i * 16 + 16, :n].astype(np.float32) @ b[:n].astype(np.float32) for i, n in enumerate(counts)]
    np.testing.assert_array_equal(kernel(a, b, counts), np.concatenate(expected))
    counts[17] = 97
    with pytest.raises(TileError, match=r"multiplies k = 97, .* in block 17"):
        kernel(a, b, counts)


OVERRUN = """
import numpy as np, tilelang_npu as tilelang, tilelang_npu.language as T

@T.prim_func
def main(A: T.Tensor((64, 128), "float16"), B: T.Tensor((96, 64), "float16"), C: T.Tensor((64, 64), "float32")):
    with T.Kernel(1, is_npu=True) as (cid, _):
        a = T.alloc_L1([64, 96], "float16")
        b = T.alloc_L1([96, 64], "float16")
        c = T.alloc_L0C([64, 64], "float32")
        T.copy(B, b)
        for s in T.serial(2):
            T.copy(A[0:64, s * 64:s * 64 + 64], a[0:64, s * 64:s * 64 + 64])
        T.gemm(a, b, c, initC=True)
        T.copy(c, C)

kernel = tilelang.compile(main, out_idx=[2], target="npuir")
if __name__ == "__main__":
    kernel(np.ones((64, 128), np.float16), np.ones((96, 64), np.float16))
"""


@pytest.mark.parametrize("how", ["check", "run"])
def test_the_command_line_names_the_line_and_the_buffer(how: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "overrun.py"
    path.write_text(OVERRUN)
    try:
        code = command([how, str(path)])
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    heard = capsys.readouterr()
    assert code == 1
    assert "T502]: T.copy takes 64..127 of the columns of a, which has 0..95 in block 0" in heard.out + heard.err
    assert f"overrun.py:12:{OVERRUN.splitlines()[11].index('T.copy') + 1}" in heard.out + heard.err


@T.macro
def sum_of_a_row(a: Any, r: Any, o: Any, n: Any) -> Any:
    T.vadd(a[2, n:n + 16], r, o)


@T.macro
def reshaped(a: Any, r: Any, o: Any, n: Any) -> Any:
    T.copy(T.reshape(a[2, n:n + 16], (1, 16)), o)


@pytest.mark.parametrize("body", [sum_of_a_row, reshaped], ids=["sum_of_a_row", "reshaped"])
def test_a_slice_of_ub_under_another_shape_ends_in_its_row(body: Any) -> None:
    @T.prim_func
    def main(A: T.Tensor((8, 32), "float32"), N: T.Tensor((1,), "int32"), O: T.Tensor((1, 16), "float32")):
        with T.Kernel(1, is_npu=True) as (cid, _):
            a = T.alloc_ub((8, 32), "float32")
            r = T.alloc_ub((1, 16), "float32")
            o = T.alloc_ub((1, 16), "float32")
            T.copy(A, a)
            T.fill(r, 0.0)
            n = N[0]
            body(a, r, o, n)
            T.copy(o, O)

    kernel = tilelang.compile(main, out_idx=[2], target="npuir")
    a = np.arange(256, dtype=np.float32).reshape(8, 32)
    for n in (0, 8, 16):
        np.testing.assert_array_equal(kernel(a, np.array([n], np.int32)), a[2:3, n:n + 16])
    with pytest.raises(TileError, match=r"takes 24\.\.39 of axis 1 of a, which has 0\.\.31"):
        kernel(a, np.array([24], np.int32))


def product_of_parts(form: str, kind: str) -> Any:
    """A product of slices whose start (a multiple of 32) and size only run time knows."""
    sums = "int32" if kind == "int8" else "float32"
    a_shape = (96, 64) if form == "transposed A" else (64, 96)
    b_shape = (64, 96) if form == "transposed B" else (96, 64)

    @T.prim_func
    def main(A: T.Tensor(a_shape, kind), B: T.Tensor(b_shape, kind), N: T.Tensor((2,), "int32"), C: T.Tensor((64, 64), sums)):
        with T.Kernel(1, is_npu=True) as (cid, _):
            a = T.alloc_L1(a_shape, kind)
            b = T.alloc_L1(b_shape, kind)
            c = T.alloc_L0C((64, 64), sums)
            T.copy(A, a)
            T.copy(B, b)
            s = N[0] * 32
            n = N[1]
            if form == "terms":
                T.gemm(a[:, s:s + n], b[s:s + n, :], c, initC=True)
            elif form == "transposed A":
                T.gemm(a[s:s + n, :], b[s:s + n, :], c, transpose_A=True, initC=True)
            elif form == "transposed B":
                T.gemm(a[:, s:s + n], b[:, s:s + n], c, transpose_B=True, initC=True)
            elif form == "rows":
                T.gemm(a[s:s + n, :], b, c[s:s + n, :], initC=True)
            elif form == "columns":
                T.gemm(a, b[:, s:s + n], c[:, s:s + n], initC=True)
            if form == "rows":
                T.copy(c[s:s + n, :], C[s:s + n, :])
            elif form == "columns":
                T.copy(c[:, s:s + n], C[:, s:s + n])
            else:
                T.copy(c, C)

    return tilelang.compile(main, target="npuir")


@pytest.mark.parametrize("kind", ["float16", "bfloat16", "float32", "int8"])
@pytest.mark.parametrize("form", ["terms", "transposed A", "transposed B", "rows", "columns"])
def test_products_of_slices_of_any_place_and_size(form: str, kind: str) -> None:
    kernel = product_of_parts(form, kind)
    numpy_kind = kernel.params[0].dtype.numpy
    a, b = (numbers(shape, "int8", seed).astype(numpy_kind) for shape, seed in (
        (kernel.params[0].shape, 1), (kernel.params[1].shape, 2)))
    left = a.T if form == "transposed A" else a
    right = b.T if form == "transposed B" else b
    along = 64 if form in ("rows", "columns") else 96
    for s, n in ((0, along), (1, 32), (1, 20), (along // 32 - 1, 32), (0, 33), (0, 1)):
        chosen = slice(s * 32, s * 32 + n)
        expected = np.zeros((64, 64))
        x, y = left.astype(np.float64), right.astype(np.float64)
        if form == "rows":
            expected[chosen] = x[chosen] @ y
        elif form == "columns":
            expected[:, chosen] = x @ y[:, chosen]
        else:
            expected = x[:, chosen] @ y[chosen]
        c = np.zeros((64, 64), kernel.params[3].dtype.numpy)
        kernel(a, b, np.array([s, n], np.int32), c)
        np.testing.assert_array_equal(c, expected, err_msg=f"{s}, {n}")
        assert kernel.last_launch.hazards == []
    with pytest.raises(TileError, match=r"T502.*: T\.gemm takes"):
        kernel(a, b, np.array([along // 32 - 1, 49], np.int32), np.zeros_like(c))
