"""A value that a ``T.Parallel`` uses several times is computed once, and has at each use the elements of its definition."""

from __future__ import annotations

import importlib.util
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T

ROWS, COLUMNS = 16, 64
Body = Callable[..., None]


def kernel_of(body: Body, dtype: str = "float32") -> Any:
    """A kernel that loads X and Y to x and y, executes a body at every point, and stores x, y and z."""
    shape = (ROWS, COLUMNS)
    statements = T.macro(body)

    @T.prim_func
    def main(X: T.Tensor(shape, dtype), Y: T.Tensor(shape, dtype), Z: T.Tensor(shape, dtype)):
        with T.Kernel(1, is_npu=True) as (_, _v):
            x = T.alloc_shared(shape, dtype)
            y = T.alloc_shared(shape, dtype)
            z = T.alloc_shared(shape, dtype)
            row = T.alloc_shared((COLUMNS,), dtype)
            column = T.alloc_shared((ROWS, 1), dtype)
            T.copy(X, x)
            T.copy(Y, y)
            T.copy(X[0, 0:COLUMNS], row)
            T.reduce_max(x, column, dim=1)
            T.fill(z, 1)
            for i, j in T.Parallel(ROWS, COLUMNS):
                statements(x, y, z, row, column, i, j)
            T.copy(x, X)
            T.copy(y, Y)
            T.copy(z, Z)

    return tilelang.compile(main, target="npuir")


def count(kernel: Any, name: str) -> int:
    return int(kernel.mlir("vectorise-parallel").count(f'tile.elementwise "{name}"'))


def is_right(kernel: Any) -> bool:
    rng = np.random.default_rng(0)
    return bool(kernel.check(*(rng.standard_normal((ROWS, COLUMNS)).astype(np.float32) for _ in range(3))))


def named(x: Any, y: Any, z: Any, row: Any, column: Any, i: Any, j: Any) -> None:
    s = T.exp(x[i, j])
    y[i, j] = s * s
    z[i, j] = s + y[i, j]


def written_twice(x: Any, y: Any, z: Any, row: Any, column: Any, i: Any, j: Any) -> None:
    y[i, j] = T.exp(x[i, j]) * T.exp(x[i, j])
    z[i, j] = T.exp(x[i, j]) + y[i, j]


def stored_and_used(x: Any, y: Any, z: Any, row: Any, column: Any, i: Any, j: Any) -> None:
    s = T.exp(x[i, j])
    y[i, j] = s
    z[i, j] = s + 1.0


def stored_and_overwritten(x: Any, y: Any, z: Any, row: Any, column: Any, i: Any, j: Any) -> None:
    s = T.exp(x[i, j]) * 2.0
    y[i, j] = s
    y[i, j] = y[i, j] + s
    z[i, j] = s + 1.0


def source_overwritten(x: Any, y: Any, z: Any, row: Any, column: Any, i: Any, j: Any) -> None:
    s = T.exp(x[i, j])
    x[i, j] = x[i, j] + y[i, j]
    y[i, j] = s * x[i, j]
    z[i, j] = s + T.exp(x[i, j])


@pytest.mark.parametrize(("body", "exps"), [
    (named, 1), (written_twice, 1), (stored_and_used, 1), (stored_and_overwritten, 1), (source_overwritten, 2)])
def test_a_value_is_computed_once(body: Body, exps: int) -> None:
    kernel = kernel_of(body)
    assert count(kernel, "exp") == exps
    assert is_right(kernel)


def test_a_value_that_is_stored_is_read_from_there() -> None:
    text = kernel_of(stored_and_used).mlir("vectorise-parallel")
    assert text.count('tile.alloc "T.Parallel"') == 0
    assert text.count("tile.copy") == 6, "no copy but those of the author"


def truncated(x: Any, a: Any, c: Any, i: Any, j: Any, dtype: str) -> Any:
    return T.cast(x[i, j], dtype)


def largest(x: Any, a: Any, c: Any, i: Any, j: Any, dtype: str) -> Any:
    return T.max(a[i, j], c[i, j])


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "uint32"])
@pytest.mark.parametrize("value", [truncated, largest])
def test_unsigned_values_that_are_stored_and_used_again(value: Callable[..., Any], dtype: str) -> None:
    """A tile of unsigned elements is seen by way of a signed view, which is erased where nothing uses it."""
    shape = (ROWS, COLUMNS)
    computed = T.macro(value)

    @T.prim_func
    def main(X: T.Tensor(shape, "float32"), A: T.Tensor(shape, dtype), Z: T.Tensor(shape, dtype), W: T.Tensor(shape, dtype),
             F: T.Tensor(shape, "float32")):
        with T.Kernel(1, is_npu=True) as (_, _v):
            x = T.alloc_shared(shape, "float32")
            a = T.alloc_shared(shape, dtype)
            c = T.alloc_shared(shape, dtype)
            z = T.alloc_shared(shape, dtype)
            w = T.alloc_shared(shape, dtype)
            f = T.alloc_shared(shape, "float32")
            T.copy(X, x)
            T.copy(A, a)
            T.copy(W, c)
            for i, j in T.Parallel(*shape):
                s = computed(x, a, c, i, j, dtype)
                z[i, j] = s
                f[i, j] = T.cast(s, "float32")
                w[i, j] = s
            T.copy(z, Z)
            T.copy(w, W)
            T.copy(f, F)

    kernel = tilelang.compile(main, target="npuir")
    rng = np.random.default_rng(0)
    x, (a, c) = rng.uniform(0, 200, shape).astype(np.float32), rng.integers(0, 250, (2, *shape)).astype(dtype)
    assert kernel.check(x, a, np.zeros(shape, dtype), c, np.zeros(shape, np.float32))


def test_elements_in_gm_are_loaded_once() -> None:
    @T.prim_func
    def main(X: T.Tensor((64,), "float32"), Y: T.Tensor((64,), "float32")):
        with T.Kernel(1, is_npu=True) as (_, _v):
            y = T.alloc_shared((64,), "float32")
            for i in T.Parallel(64):
                y[i] = X[i] * X[i] + T.exp(X[i])
            T.copy(y, Y)

    kernel = tilelang.compile(main, target="npuir")
    assert kernel.mlir("vectorise-parallel").count("tile.copy %X") == 1
    x = np.linspace(-2, 2, 64, dtype=np.float32)
    assert kernel.check(x, np.zeros_like(x))


def rows_and_columns(dtype: str = "float32") -> Any:
    shape = (24, 48)

    @T.prim_func
    def main(X: T.Tensor(shape, dtype), R: T.Tensor((48,), dtype), C: T.Tensor((24,), dtype), Y: T.Tensor(shape, dtype)):
        with T.Kernel(1, is_npu=True) as (_, _v):
            x = T.alloc_shared(shape, dtype)
            r = T.alloc_shared((48,), dtype)
            c = T.alloc_shared((24,), dtype)
            T.copy(X, x)
            T.copy(R, r)
            T.copy(C, c)
            for i, j in T.Parallel(*shape):
                scale = T.cast(i, dtype) / T.abs(c[i])
                x[i, j] = x[i, j] * scale + (r[j] * r[j] - scale)
            T.copy(x, Y)

    return tilelang.compile(main, target="npuir")


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_values_of_a_row_or_a_column_are_computed_for_one(dtype: str) -> None:
    kernel = rows_and_columns(dtype)
    text = kernel.mlir("vectorise-parallel")
    kind = {"float32": "f32", "float16": "f16"}[dtype]
    (division,) = [line for line in text.splitlines() if '"div"' in line]
    (square,) = [line for line in text.splitlines() if '"mul"' in line and "1x48x" in line.partition("outs")[2]]
    assert f"outs(%{division.partition('outs(%')[2].partition(' ')[0]} : memref<24x1x{kind}" in division and square
    rng = np.random.default_rng(0)
    x, r, c = (rng.uniform(0.5, 2, size).astype(dtype) for size in ((24, 48), 48, 24))
    assert kernel.check(x, r, c, np.zeros_like(x))


def test_without_room_a_value_is_computed_again() -> None:
    """The tiles leave room for one temporary tile of this size, and the second one would be live at the same time."""
    shape, dtype = (64, 192), "float32"

    @T.prim_func
    def main(X: T.Tensor(shape, dtype), Y: T.Tensor(shape, dtype)):
        with T.Kernel(1, is_npu=True) as (_, _v):
            x = T.alloc_shared(shape, dtype)
            y = T.alloc_shared(shape, dtype)
            T.copy(X, x)
            for i, j in T.Parallel(*shape):
                s = T.exp(x[i, j])
                x[i, j] = s * (s + 1.0) * (s + 2.0)
                y[i, j] = s + x[i, j]
            T.copy(y, Y)

    kernel = tilelang.compile(main, target="npuir")
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    assert kernel.check(x, np.zeros_like(x))
    assert count(kernel, "exp") > 1
    assert max(one.used for one in kernel.memory_report().memories) <= kernel.chip.memory["ub"].size


def statements_of(rng: random.Random) -> list[str]:
    """Random statements on elements of x, y and z, with names for values; a name is used at any later place."""
    names: list[str] = []

    def value(depth: int) -> str:
        kind = rng.random()
        if depth == 0 or kind < 0.2:
            return rng.choice([*names, *names, "x[i, j]", "y[i, j]", "z[i, j]", "row[j]", "column[i, 0]", "1.5",
                               "T.cast(i, 'float32')"])
        if kind < 0.4:
            return f"{rng.choice(('T.abs', 'T.sigmoid', '-'))}({value(depth - 1)})"
        return f"({value(depth - 1)} {rng.choice('+-*')} {value(depth - 1)})"

    lines = []
    for number in range(rng.randint(3, 8)):
        if rng.random() < 0.45:
            lines.append(f"v{number} = {rng.choice('xyz')}[i, j] * 0.5 + {value(2)}")
            names.append(f"v{number}")
        else:
            lines.append(f"{rng.choice('xyz')}[i, j] = {value(3)}")
    return [*lines, f"z[i, j] = {' + '.join(['z[i, j]', *names])}"]


@pytest.mark.parametrize("seed", range(40))
def test_random_bodies(seed: int, tmp_path: Path) -> None:
    lines = statements_of(random.Random(seed))
    path = tmp_path / f"body_{seed}.py"
    head = "import tilelang_npu.language as T\n\n\ndef body(x, y, z, row, column, i, j):\n"
    path.write_text(head + "".join(f"    {line}\n" for line in lines))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert is_right(kernel_of(module.body)), "\n".join(lines)
