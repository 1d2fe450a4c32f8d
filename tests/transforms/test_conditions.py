"""Conditional expressions in loops: operands that are not selected are not read, and loops are vectorised if possible."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T

TEXT = """
import tilelang_npu as tilelang
import tilelang_npu.language as T

@T.prim_func
def main(X: T.Tensor({shape}, "{dtype}"), Y: T.Tensor({shape}, "{dtype}"), n: T.int32):
    with T.Kernel(1, is_npu=True) as (cid, _):
        x = T.alloc_shared({shape}, "{dtype}")
        y = T.alloc_shared({shape}, "{dtype}")
        T.copy(X, x)
        T.copy(Y, y)
{body}
        T.copy(y, Y)
"""


def load(file: Path) -> Any:
    spec = importlib.util.spec_from_file_location("kernel", file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def kernel(folder: Path, shape: tuple[int, ...], dtype: str, body: str, *without: str) -> Any:
    file = folder / "kernel.py"
    lines = "\n".join(" " * 8 + line for line in body.strip().splitlines())
    file.write_text(TEXT.format(shape=shape, dtype=dtype, body=lines))
    return tilelang.compile(load(file).main, target="npuir", sanitize=True, pass_configs={"tl.disable": list(without)})


def reported(made: Any) -> list[str]:
    return [line.partition("T.Parallel ")[2] for line in made.explain().sections["loops"]]


def check(folder: Path, shape: tuple[int, ...], dtype: str, body: str, n: int = 0) -> list[str]:
    """Compares a kernel with a point-by-point loop in Python and on the machine; returns the remarks on the loops."""
    rng = np.random.default_rng(0)
    x, y = (rng.integers(-20, 20, shape).astype(dtype) for _ in range(2))
    expected = y.copy()
    python = "\n".join(line if "T.Parallel(" not in line else loops(line) for line in body.strip().splitlines())
    exec(python, {"T": Scalar, "x": Strict(x), "y": Strict(expected), "n": n, "itertools": __import__("itertools")})
    for without in ([], ["vectorise-parallel"]):
        made = kernel(folder, shape, dtype, body, *without)
        left = y.copy()
        made(x, left, n)
        np.testing.assert_array_equal(left, expected, err_msg=f"without {without}")
    return reported(kernel(folder, shape, dtype, body))


def loops(line: str) -> str:
    head, _, extents = line.partition("T.Parallel(")
    sizes = extents.rstrip("):").split(", ")
    if len(sizes) == 1:
        return f"{head}range({sizes[0]}):"
    return f"{head}itertools.product({', '.join(f'range({size})' for size in sizes)}):"


class Scalar:
    """The functions of T that the bodies use, for Python."""

    serial = range


class Strict:
    """An array that raises an error for negative indices."""

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self.array = array

    def _checked(self, place: Any) -> Any:
        at = place if isinstance(place, tuple) else (place,)
        assert all(0 <= index < size for index, size in zip(at, self.array.shape, strict=True)), place
        return place

    def __getitem__(self, place: Any) -> Any:
        return self.array[self._checked(place)]

    def __setitem__(self, place: Any, value: Any) -> None:
        self.array[self._checked(place)] = value


@pytest.mark.parametrize("dtype", ["float32", "float16", "int32", "int16"])
@pytest.mark.parametrize("shape", [(8, 64), (5, 33), (3, 1)])
def test_the_neighbour_on_the_left(tmp_path: Path, shape: tuple[int, int], dtype: str) -> None:
    lines = check(tmp_path, shape, dtype, f"""
for i, j in T.Parallel{shape}:
    y[i, j] = x[i, j - 1] if j > 0 else 0
""")
    if shape[1] > 1:
        first, rest = (line.split("  ")[0] for line in lines)
        assert (first, rest) == (f"{shape[0]}x1 from [0, 0]", f"{shape[0]}x{shape[1] - 1} from [0, 1]")
    else:
        assert lines == ["3x1  vector: copies and fills"]
    if shape == (8, 64):
        assert all("vector" in line for line in lines)


@pytest.mark.parametrize("dtype", ["float32", "float16", "int32"])
def test_the_rows_above_and_below(tmp_path: Path, dtype: str) -> None:
    lines = check(tmp_path, (7, 64), dtype, """
for i, j in T.Parallel(7, 64):
    y[i, j] = (x[i - 1, j] if i >= 1 else 0) + (x[i + 1, j] if i + 1 < 7 else x[i, j])
""")
    assert [line.split(":")[0] for line in lines] == [
        "1x64 from [0, 0]  vector", "5x64 from [1, 0]  vector", "1x64 from [6, 0]  vector"]


@pytest.mark.parametrize(("condition", "read", "parts"), [
    ("i > 0 and j > 0", "x[i - 1, j - 1]", 3),
    ("i > 0 and j < 39", "x[i - 1, j + 1]", 3),
    ("not j == 39", "x[i, j + 1]", 2),
    ("j != 0", "x[i, j - 1]", 2),
    ("39 - j >= 4", "x[i, j + 4]", 2),
    ("2 * j < 40", "x[i, 2 * j]", 2),
    ("j >= 3 or i == 2", "x[i, j if i == 2 else j - 3]", 4),
    ("j <= 38 and x[i, j + 1] > 0", "x[i, j + 1]", 2),
])
def test_conditions(tmp_path: Path, condition: str, read: str, parts: int) -> None:
    lines = check(tmp_path, (4, 40), "float32", f"""
for i, j in T.Parallel(4, 40):
    y[i, j] = {read} if {condition} else 7
""")
    assert len(lines) == parts


@pytest.mark.parametrize("dtype", ["int32", "int16"])
@pytest.mark.parametrize("quotient", ["y[i, j] // x[i, j]", "y[i, j] % x[i, j]", "100 // (x[i, j] * 2)", "y[i, j] // (n - 3)"])
def test_divisors_that_are_not_zero_where_they_are_chosen(tmp_path: Path, dtype: str, quotient: str) -> None:
    where = "n != 3" if "n - 3" in quotient else "x[i, j] != 0"
    for n in (3, 5):
        check(tmp_path, (3, 33), dtype, f"""
for i, j in T.Parallel(3, 33):
    if {where}:
        y[i, j] = {quotient}
    else:
        y[i, j] = -1
""", n)
    made = kernel(tmp_path, (3, 33), dtype, f"""
for i, j in T.Parallel(3, 33):
    y[i, j] = T.if_then_else({where}, {quotient}, -1)
""")
    x, y = np.arange(-49, 50, dtype=dtype).reshape(3, 33), np.arange(99, dtype=dtype).reshape(3, 33)
    chosen = x != 0 if "x" in where else np.zeros_like(x, bool)
    with np.errstate(divide="ignore"):
        quotients = eval(quotient.replace("[i, j]", ""), {"x": x, "y": y, "n": 3})
    expected = np.where(chosen, quotients, -1)
    made(x, y, 3)
    np.testing.assert_array_equal(y, expected)


@pytest.mark.parametrize("n", [0, 3])
def test_divisors_in_serial_loops(tmp_path: Path, n: int) -> None:
    made = kernel(tmp_path, (33,), "int32", """
for i in T.serial(33):
    y[i] = T.if_then_else(n != 0, 100 // n, 7)
    if x[i] != 0:
        y[i] += 100 // x[i]
    if n != 0 and 50 % n > 1:
        y[i] += 1000
""")
    x, y = np.arange(-16, 17, dtype=np.int32), np.zeros(33, np.int32)
    made(x, y, n)
    expected = [(100 // n if n else 7) + (100 // int(value) if value else 0) + (1000 if n and 50 % n > 1 else 0) for value in x]
    np.testing.assert_array_equal(y, expected)


def test_choices_in_choices(tmp_path: Path) -> None:
    """Nine parts: the corners, the edges and the rest."""
    near = " + ".join(f"((x[i {up}, j {left}] if {row} else 1) if {column} else 2)"
                      for up, row in (("- 1", "i > 0"), ("+ 0", "i >= 0"), ("+ 1", "i < 5"))
                      for left, column in (("- 1", "j > 0"), ("+ 1", "j < 47")))
    lines = check(tmp_path, (6, 48), "float32", f"""
for i, j in T.Parallel(6, 48):
    y[i, j] = {near}
""")
    assert len(lines) == 9


@pytest.mark.parametrize("n", [0, 1, 5])
def test_a_condition_that_all_points_share(tmp_path: Path, n: int) -> None:
    lines = check(tmp_path, (6, 64), "float32", """
for k in T.serial(6):
    for j in T.Parallel(64):
        y[k, j] = x[k - 1, j] if k > 0 else x[0, j]
for i, j in T.Parallel(6, 64):
    if n > 3:
        y[i, j] = x[i, j] * 2
""", n)
    assert [line.split("  ")[1].partition(":")[0] for line in lines] == ["vector"] * len(lines) and len(lines) == 4


@pytest.mark.parametrize("n", [0, 3, 63])
def test_a_place_that_is_known_at_run_time(tmp_path: Path, n: int) -> None:
    """Which points have a neighbour is known when the kernel runs: each of them asks."""
    lines = check(tmp_path, (4, 64), "float32", """
for i, j in T.Parallel(4, 64):
    y[i, j] = x[i, j - n] if j >= n else 0
""", n)
    assert len(lines) == 1 and lines[0].startswith("4x64  point by point: a condition that differs from point to point decides")


def test_conditions_that_depend_on_data(tmp_path: Path) -> None:
    """A number that is read decides: with both elements there it selects, else each point asks."""
    lines = check(tmp_path, (4, 64), "float32", """
for i, j in T.Parallel(4, 64):
    y[i, j] = x[i, 63 - j // 3] if x[i, j] < -25 else x[i, j]
for i, j in T.Parallel(4, 64):
    y[i, j] = y[i, j] if x[i, j] > 0 else x[i, j]
""")
    assert "point by point" in lines[0] and "select" in lines[1]


@pytest.mark.parametrize("absent", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize(("rows", "columns"), [(16, 64), (5, 33), (1, 8)])
def test_rows_that_are_gathered(rows: int, columns: int, dtype: str, absent: bool) -> None:
    """Rows with indices from memory, some of which mean "no row": one copy for each existing row."""
    @T.prim_func
    def main(I: T.Tensor((rows,), "int32"), X: T.Tensor((40, columns), dtype), Y: T.Tensor((rows, columns), dtype)):
        with T.Kernel(1, is_npu=True) as (cid, _):
            index = T.alloc_shared((rows,), "int32")
            y = T.alloc_shared((rows, columns), dtype)
            T.copy(I, index)
            for i, j in T.Parallel(rows, columns):
                if absent:
                    y[i, j] = T.if_then_else(index[i] >= 0, X[index[i], j], 3)
                else:
                    y[i, j] = X[index[i], j]
            T.copy(y, Y)

    rng = np.random.default_rng(0)
    index = rng.integers(-4 if absent else 0, 40, rows).astype(np.int32)
    x = rng.integers(-20, 20, (40, columns)).astype(dtype)
    cycles, left = [], []
    for without in ([], ["vectorise-parallel"]):
        made = tilelang.compile(main, target="npuir", sanitize=True, pass_configs={"tl.disable": without})
        y = np.zeros((rows, columns), dtype)
        made(index, x, y)
        cycles.append(made.last_launch.cycles)
        left.append(y)
    for y in left:
        np.testing.assert_array_equal(y, np.where((index >= 0)[:, None], x[index], np.asarray(3, dtype)))
    assert cycles[0] < cycles[1]
    if columns == 64:
        assert reported(tilelang.compile(main, target="npuir")) == ["16x64  vector, row by row: copies and fills"]
        assert cycles[0] * 7 < cycles[1]  # whose addresses move by an addition each


@pytest.mark.parametrize(("element", "way"), [
    ("x[index[i], j]", "vector, row by row: copies and fills"),
    ("x[index[i], 255 - j]", "vector: mul, add; rearranged first: x with gather"),
    ("x[index[j % 4], j]", "vector: mul, add; rearranged first: x with gather")])
def test_long_rows_of_a_tile_are_copied_and_other_elements_gathered(element: str, way: str, tmp_path: Path) -> None:
    """Only elements that follow one another in a row of the tile can be copied, in less time than a gather takes."""
    file = tmp_path / "kernel.py"
    file.write_text(f"""
import tilelang_npu.language as T

@T.prim_func
def main(I: T.Tensor((4,), "int32"), X: T.Tensor((20, 256), "float32"), Y: T.Tensor((4, 256), "float32")):
    with T.Kernel(1, is_npu=True) as (cid, _):
        index = T.alloc_shared((4,), "int32")
        x = T.alloc_shared((20, 256), "float32")
        y = T.alloc_shared((4, 256), "float32")
        T.copy(I, index)
        T.copy(X, x)
        for i, j in T.Parallel(4, 256):
            y[i, j] = {element}
        T.copy(y, Y)
""")
    made = tilelang.compile(load(file).main, target="npuir", sanitize=True)
    index, x = np.array([7, 0, 19, 7], np.int32), np.arange(20 * 256, dtype=np.float32).reshape(20, 256)
    y = np.zeros((4, 256), np.float32)
    made(index, x, y)
    i, j = np.indices(y.shape)
    np.testing.assert_array_equal(y, eval(element, {"x": x, "index": index, "i": i, "j": j}))
    assert reported(made) == [f"4x256  {way}"]


def test_rows_of_rows(tmp_path: Path) -> None:
    """Two axes are scalar loops, the last one is vectorised; if that is impossible, no axis is vectorised."""
    lines = check(tmp_path, (3, 4, 32), "float32", """
for i, j, k in T.Parallel(3, 4, 32):
    y[i, j, k] = (x[i - 1, j, k] if x[i, j, 0] > 0 and i > 0 else x[i, j, k]) + (1 if x[i, 0, 0] > 3 else 0)
for i, j, k in T.Parallel(3, 4, 32):
    y[i, j, k] = y[i, j, k] if x[i, j, k] > 0 and i > 0 else x[2 - i // 3, j, k]
for i, j in T.Parallel(3, 4):
    y[i, j, j] = x[i, j, 3 - j]
""")
    assert [line.partition(":")[0].split("  ")[1] for line in lines][-1] == "point by point"
    assert "vector, row by row" in " ".join(lines)


def test_slopes_stay_whole(tmp_path: Path) -> None:
    """Below the diagonal there are no rectangles."""
    lines = check(tmp_path, (12, 12), "float32", """
for i, j in T.Parallel(12, 12):
    y[i, j] = x[i - j, j] if i >= j else 0
""")
    assert len(lines) == 1 and "point by point" in lines[0]


def test_too_many_parts_stay_whole(tmp_path: Path) -> None:
    """Seven stretches of each axis would be 49 loops."""
    near = " + ".join(f"(x[i - {by}, j - {by}] if i >= {by} and j >= {by} else 0)"
                      f" + (x[i + {by}, j + {by}] if i < {8 - by} and j < {8 - by} else 0)" for by in (1, 2, 3))
    lines = check(tmp_path, (8, 8), "float32", f"""
for i, j in T.Parallel(8, 8):
    y[i, j] = {near}
""")
    assert len(lines) == 1 and "point by point" in lines[0]


def test_points_that_read_what_others_write_stay_in_order(tmp_path: Path) -> None:
    lines = check(tmp_path, (4, 24), "float32", """
for i, j in T.Parallel(4, 24):
    y[i, j] = y[i, j - 1] if j > 0 else x[i, 0]
""")
    assert len(lines) == 1 and "point by point" in lines[0]


def test_statements_under_a_condition(tmp_path: Path) -> None:
    lines = check(tmp_path, (6, 64), "float32", """
for i, j in T.Parallel(6, 64):
    if i > 1:
        y[i, j] = x[i - 2, j] + 1
    else:
        y[i, j] = x[i, j] * 2
""")
    assert [line.split("  ")[0] for line in lines] == ["2x64 from [0, 0]", "4x64 from [2, 0]"]
    assert all("vector" in line for line in lines)


def test_a_loop_inside(tmp_path: Path) -> None:
    check(tmp_path, (6, 32), "float32", """
for i, j in T.Parallel(6, 32):
    for k in T.serial(3):
        y[i, j] = y[i, j] + (x[i + k, j] if i + k < 6 else 1)
""")


def test_serial_loops(tmp_path: Path) -> None:
    """Each point is a branch already; the side that is not taken is not read."""
    body = """
for i in T.serial(5):
    for j in T.serial(9):
        y[i, j] = (x[i, j - 1] if j > 0 else 0) + (x[i + 1, j] if i < 4 and j > n else 3)
"""
    rng = np.random.default_rng(0)
    x = rng.integers(-20, 20, (5, 9)).astype(np.float32)
    y = np.zeros_like(x)
    kernel(tmp_path, (5, 9), "float32", body)(x, y, 2)
    expected = np.full_like(x, 3)
    expected[:4, 3:] = x[1:, 3:]
    expected[:, 1:] += x[:, :-1]
    np.testing.assert_array_equal(y, expected)


@pytest.mark.parametrize("width", [1, 30, 64])
def test_elements_of_a_tensor(width: int) -> None:
    """Of every block but the first one all columns have a left neighbour; the last block reaches beyond the tensor."""
    columns = 100

    @T.prim_func
    def main(X: T.Tensor((5, columns), "float32"), Y: T.Tensor((5, columns), "float32")):
        with T.Kernel(T.ceildiv(columns, width), is_npu=True) as (cid, _):
            y = T.alloc_shared((5, width), "float32")
            for i, j in T.Parallel(5, width):
                y[i, j] = T.if_then_else(cid * width + j > 0, X[i, cid * width + j - 1], -1)
            T.copy(y, Y[0, cid * width])

    x = np.random.default_rng(0).random((5, columns), np.float32)
    y = np.zeros_like(x)
    made = tilelang.compile(main, target="npuir", sanitize=True)
    made(x, y)
    np.testing.assert_array_equal(y[:, 1:], x[:, :-1])
    assert (y[:, 0] == -1).all()
    if width == 64:
        heads = [line.split(":")[0] for line in reported(made)]
        assert heads == ["5x1 from [0, 0]  point by point", "5x63 from [0, 1]  vector"]


@pytest.mark.parametrize("size", [1, 63, 64, 200])
def test_the_tail_of_a_tensor_whose_size_the_call_tells(size: int) -> None:
    """Elements past the end are replaced by a select: vector instructions as before."""
    n = T.symbolic("n")

    @T.prim_func
    def main(X: T.Tensor((n,), "float32"), Y: T.Tensor((n,), "float32")):
        with T.Kernel(T.ceildiv(n, 64), is_npu=True) as (cid, _):
            y = T.alloc_shared((64,), "float32")
            for j in T.Parallel(64):
                y[j] = T.if_then_else(cid * 64 + j < n, X[cid * 64 + j], 5.0) + 1
            T.copy(y, Y[cid * 64])

    x = np.random.default_rng(0).random(size, np.float32)
    y = np.zeros_like(x)
    made = tilelang.compile(main, target="npuir", sanitize=True)
    made(x, y)
    np.testing.assert_array_equal(y, x + 1)
    (line,) = reported(made)
    assert "vector" in line and "select" in line


def test_random_neighbours(tmp_path: Path) -> None:
    """Sums of neighbours anywhere, each under the condition that it is there, or under a stricter one."""
    rng = np.random.default_rng(7)
    for _ in range(10):
        rows, columns = (int(value) for value in rng.integers(1, 9, 2))
        columns = columns * int(rng.choice([1, 8]))
        terms = []
        for _ in range(int(rng.integers(1, 4))):
            down, right = (int(value) for value in rng.integers(-3, 4, 2))
            more = int(rng.integers(0, 2))
            asked = [f"i + {down} >= {more}", f"i + {down} < {rows}", f"{right} + j >= 0", f"{columns - more} > j + {right}"]
            rng.shuffle(asked)
            terms.append(f"(x[i + {down}, j + {right}] if {' and '.join(asked)} else {int(rng.integers(0, 5))})")
        check(tmp_path, (rows, columns), str(rng.choice(["float32", "int32"])), f"""
for i, j in T.Parallel({rows}, {columns}):
    y[i, j] = {' + '.join(terms)}
""")
