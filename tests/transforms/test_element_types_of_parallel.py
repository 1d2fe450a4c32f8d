"""Element types that the Vector core does not compute in, or orders unsigned: T.Parallel is vector operations on them too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilelang_npu as tilelang
import tilelang_npu.language as T

ROWS, COLUMNS = 12, 40
HALF = ml_dtypes.bfloat16


def kernel(kind: str, change: Callable[[Any, Any], Any], **settings: Any) -> Any:
    @tilelang.jit(out_idx=[-1], target="npuir", sanitize=True, **settings)
    def made():
        @T.prim_func
        def main(A: T.Tensor((ROWS, COLUMNS), kind), B: T.Tensor((ROWS, COLUMNS), kind), C: T.Tensor((ROWS, COLUMNS), kind)):
            with T.Kernel(1, is_npu=True) as (_, _):
                a = T.alloc_shared((ROWS, COLUMNS), kind)
                b = T.alloc_shared((ROWS, COLUMNS), kind)
                c = T.alloc_shared((ROWS, COLUMNS), kind)
                T.copy(A, a)
                T.copy(B, b)
                for i, j in T.Parallel(ROWS, COLUMNS):
                    c[i, j] = change(a[i, j], b[i, j])
                T.copy(c, C)

        return main

    return made()


def vectorised(made: Any) -> bool:
    return "scf.for" not in made.get_kernel_source()


HALVES: dict[str, tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Any]]] = {
    "sum": (lambda x, y: x + y, lambda x, y: x + y),
    "product and sum": (lambda x, y: x * y + x, lambda x, y: x * y + x),
    "quotient": (lambda x, y: x / y, lambda x, y: x / y),
    "scalar": (lambda x, y: x * T.cast(0.3, "bfloat16") - 1, lambda x, y: x * HALF(0.3) - HALF(1)),
    "absolute": (lambda x, y: T.abs(x), lambda x, y: np.abs(x)),
    "largest": (lambda x, y: T.max(T.max(x, y), x * y), lambda x, y: np.maximum(np.maximum(x, y), x * y)),
    "choice": (lambda x, y: T.if_then_else(x < y, x - y, y), lambda x, y: np.where(x < y, x - y, y)),
    "root": (lambda x, y: T.sqrt(T.abs(x)), lambda x, y: np.sqrt(np.abs(x))),
}


@pytest.mark.parametrize("what", HALVES)
def test_bfloat16_is_rounded_after_each_operation_and_none_is_point_by_point(what: str) -> None:
    change, meaning = HALVES[what]
    rng = np.random.default_rng(0)
    a, b = ((rng.standard_normal((ROWS, COLUMNS)) * 5).astype(HALF) for _ in range(2))
    made = kernel("bfloat16", change)
    assert vectorised(made)
    found, wanted = np.asarray(made(a, b)), meaning(a, b)
    np.testing.assert_array_equal(found.view(np.uint16), wanted.view(np.uint16))


def test_a_function_of_bfloat16_is_what_it_is_point_by_point() -> None:
    rng = np.random.default_rng(1)
    a = (rng.standard_normal((ROWS, COLUMNS)) * 5).astype(HALF)

    def gate(x: Any, y: Any) -> Any:
        return x / (1 + T.exp(-x))

    whole, by_point = kernel("bfloat16", gate), kernel("bfloat16", gate, pass_configs={"tl.disable": ["vectorise-parallel"]})
    assert vectorised(whole)
    assert not vectorised(by_point)
    np.testing.assert_array_equal(np.asarray(whole(a, a)).view(np.uint16), np.asarray(by_point(a, a)).view(np.uint16))
    assert by_point.last_launch.time_us > 3 * whole.last_launch.time_us


UNSIGNED: dict[str, tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Any]]] = {
    "largest": (lambda x, y: T.max(x, y), np.maximum),
    "smallest": (lambda x, y: T.min(x, y), np.minimum),
    "not less than a number": (lambda x, y: T.max(x, 200), lambda x, y: np.maximum(x, x.dtype.type(200))),
    "less": (lambda x, y: T.if_then_else(x < y, x, y), lambda x, y: np.where(x < y, x, y)),
    "beyond": (lambda x, y: T.if_then_else(x > 150, x, y), lambda x, y: np.where(x > 150, x, y)),
    "equal": (lambda x, y: T.if_then_else(x == y, x, 1), lambda x, y: np.where(x == y, x, 1).astype(x.dtype)),
    "sum around the end": (lambda x, y: T.if_then_else(x + y <= y, T.max(x, y), x),
                           lambda x, y: np.where(x + y <= y, np.maximum(x, y), x)),
}


@pytest.mark.parametrize("what", UNSIGNED)
@pytest.mark.parametrize("kind", ["uint8", "uint16", "uint32", "uint64"])
def test_unsigned_elements_are_ordered_from_zero_and_not_point_by_point(kind: str, what: str) -> None:
    change, meaning = UNSIGNED[what]
    top = np.iinfo(kind).max
    a, b = (np.random.default_rng(seed).integers(0, top, (ROWS, COLUMNS), kind, endpoint=True) for seed in (0, 1))
    b[::5] = a[::5]
    made = kernel(kind, change)
    assert vectorised(made)
    np.testing.assert_array_equal(made(a, b), meaning(a, b))


@pytest.mark.parametrize(("rows", "columns"), [(8, 32), (64, 96)])
def test_halves_of_bytes_are_unpacked_by_their_place(rows: int, columns: int) -> None:
    """As kernels for GPUs have it: the shift is computed of the column, in the type of the bytes."""
    @tilelang.jit(out_idx=[-1], target="npuir", sanitize=True)
    def made():
        @T.prim_func
        def main(A: T.Tensor((rows, columns), "uint8"), C: T.Tensor((rows, 2 * columns), "float16")):
            with T.Kernel(1, is_npu=True) as (_, _):
                a = T.alloc_shared((rows, columns), "uint8")
                c = T.alloc_shared((rows, 2 * columns), "float16")
                T.copy(A, a)
                for i, j in T.Parallel(rows, 2 * columns):
                    c[i, j] = T.cast((a[i, j // 2] >> (4 * (j % 2))) & 15, "float16")
                T.copy(c, C)

        return main

    a = np.random.default_rng(0).integers(0, 256, (rows, columns), np.uint8)
    kernel_ = made()
    assert "T.Parallel" in str(kernel_.explain())
    assert "point by point" not in str(kernel_.explain())
    np.testing.assert_array_equal(kernel_(a), np.stack([a & 15, a >> 4], -1).reshape(rows, 2 * columns))


def test_bits_of_a_bfloat16_become_a_float32() -> None:
    @tilelang.jit(out_idx=[-1], target="npuir", sanitize=True)
    def made():
        @T.prim_func
        def main(A: T.Tensor((ROWS, COLUMNS), "uint16"), C: T.Tensor((ROWS, COLUMNS), "float32")):
            with T.Kernel(1, is_npu=True) as (_, _):
                a = T.alloc_shared((ROWS, COLUMNS), "uint16")
                c = T.alloc_shared((ROWS, COLUMNS), "float32")
                T.copy(A, a)
                for i, j in T.Parallel(ROWS, COLUMNS):
                    c[i, j] = T.reinterpret("float32", T.cast(a[i, j], "uint32") << 16)
                T.copy(c, C)

        return main

    wanted = np.random.default_rng(0).standard_normal((ROWS, COLUMNS)).astype(HALF)
    kernel_ = made()
    assert vectorised(kernel_)
    np.testing.assert_array_equal(kernel_(wanted.view(np.uint16)), wanted.astype(np.float32))


@pytest.mark.parametrize("by", [2, 8, 64])
@pytest.mark.parametrize("kind", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64"])
def test_quotients_and_rests_of_data_by_powers_of_two_are_shifts(kind: str, by: int) -> None:
    """They round towards minus infinity, as in Python, for every number that there is."""
    info = np.iinfo(kind)
    a = np.random.default_rng(3).integers(info.min, info.max, (ROWS, COLUMNS), dtype=kind, endpoint=True)
    a[0, :2] = info.min, info.max
    for change, expected in ((lambda x, y: x // by, a // np.array(by, kind)), (lambda x, y: x % by, a % np.array(by, kind))):
        made = kernel(kind, change)
        assert vectorised(made)
        np.testing.assert_array_equal(made(a, a), expected)


EVERY = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "bfloat16", "float32")
WAYS = ("vector", "point by point", "serial")


def element_type(kind: str) -> np.dtype[Any]:
    return np.dtype(HALF) if kind == "bfloat16" else np.dtype(kind)


def numbers(kind: str, shape: tuple[int, ...]) -> Any:
    """Numbers of an element type, its ends and those around the ends of narrower types among them."""
    held, rng = element_type(kind), np.random.default_rng(5)
    if "int" in kind:
        low, high = int(np.iinfo(held).min), int(np.iinfo(held).max)
        made = rng.integers(low, high, shape, held, endpoint=True)
        ends = [low, high, 0, 1, 127, 128, 187, 255, 256, 32767, 32768, 40000, 65535, 65536, 2**31 - 1, 2**31, 2**32 - 1, 2**32,
                -1, -128, -129, -40000]
        special = np.array([end for end in ends if low <= end <= high], held)
    else:
        made = (rng.standard_normal(shape) * 10.0 ** rng.integers(-3, 10, shape)).astype(np.float32)
        special = np.array([0, -3, 0.5, 1.5, 2.5, 127.5, 128, 250, 255.5, 300, -0.5, 65535.5, 70000, 2.0**31, 2.0**32, 3e38,
                            np.inf, -np.inf, np.nan], np.float32)
    made.reshape(-1)[:special.size] = special
    with np.errstate(all="ignore"):
        return made.astype(held)


def stored(values: Any, kind: str, *, nearest: bool) -> Any:
    """Returns values as stored in a tile of a type: floats saturate and are rounded or truncated, integers wrap."""
    held = element_type(kind)
    with np.errstate(all="ignore"):
        if values.dtype.kind in "iu":
            if kind in ("float16", "bfloat16"):  # by way of float32
                values = values.astype(np.float32 if values.itemsize > 2 else np.float64)
            return values.astype(held)
        if "int" not in kind:
            return values.astype(np.float32).astype(held)
        whole = (np.rint if nearest else np.trunc)(values.astype(np.float64))
        info = np.iinfo(held)
        return np.array([0 if value != value else max(info.min, min(info.max, value if abs(value) == np.inf else int(value)))
                         for value in whole.reshape(-1).tolist()], held).reshape(values.shape)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("dialect", ["npuir", "ascendc"])
@pytest.mark.parametrize("kind", EVERY)
def test_every_type_becomes_every_other_one(kind: str, dialect: str, way: str) -> None:
    """uint8 to uint32 widened with their sign, and a float became an unsigned integer within the range of the signed one."""
    shape = (5, 23)

    @T.macro
    def store(x: Any, y: Any):
        if way == "serial":
            for i in T.serial(shape[0]):
                for j in T.serial(shape[1]):
                    y[i, j] = x[i, j]
        else:
            for i, j in T.Parallel(*shape):
                y[i, j] = x[i, j]

    @T.macro
    def through(x: Any, Y: Any, target: Any):
        y = T.alloc_ub(shape, target)
        store(x, y)
        T.copy(y, Y)

    @T.prim_func
    def main(X: T.Tensor(shape, kind), I8: T.Tensor(shape, "int8"), I16: T.Tensor(shape, "int16"),
             I32: T.Tensor(shape, "int32"), I64: T.Tensor(shape, "int64"),
             U8: T.Tensor(shape, "uint8"), U16: T.Tensor(shape, "uint16"),
             U32: T.Tensor(shape, "uint32"), U64: T.Tensor(shape, "uint64"), F16: T.Tensor(shape, "float16"),
             B16: T.Tensor(shape, "bfloat16"), F32: T.Tensor(shape, "float32")):
        with T.Kernel(1, is_npu=True) as (_, _):
            x = T.alloc_ub(shape, kind)
            T.copy(X, x)
            through(x, I8, "int8")
            through(x, I16, "int16")
            through(x, I32, "int32")
            through(x, I64, "int64")
            through(x, U8, "uint8")
            through(x, U16, "uint16")
            through(x, U32, "uint32")
            through(x, U64, "uint64")
            through(x, F16, "float16")
            through(x, B16, "bfloat16")
            through(x, F32, "float32")

    configs: dict[str, Any] = {"tl.disable": ["vectorise-parallel"] if way == "point by point" else []}
    if dialect == "ascendc":
        configs |= {"tl.ascend_auto_sync": True, "tl.ascend_memory_planning": True}
    made = tilelang.compile(main, target=dialect, pass_configs=configs)
    x, found = numbers(kind, shape), [np.zeros(shape, element_type(target)) for target in EVERY]
    made(x, *found)
    for target, got in zip(EVERY, found, strict=True):
        wanted = stored(x, target, nearest=dialect == "npuir" and way != "serial")
        if "int" not in target:
            got, wanted = got.astype(np.float64), wanted.astype(np.float64)
        np.testing.assert_array_equal(got, wanted, f"{kind} to {target}")


MIXED: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "or": (lambda u, x, i: x | u, lambda u, x, i: x | u),
    "and an index": (lambda u, x, i: (i | u) + x, lambda u, x, i: (i | u) + x),
    "sum": (lambda u, x, i: x + u, lambda u, x, i: x + u),
    "product": (lambda u, x, i: u * i - x, lambda u, x, i: u * i - x),
    "largest": (lambda u, x, i: T.max(x, u), lambda u, x, i: np.maximum(x, u)),
    "choice": (lambda u, x, i: T.if_then_else(x > 0, u, x), lambda u, x, i: np.where(x > 0, u, x)),
    "order": (lambda u, x, i: T.if_then_else(u > x, 1, 0), lambda u, x, i: (u > x) * 1),
    "a wide number": (lambda u, x, i: u | 0x12345, lambda u, x, i: u | 0x12345),
    "shifted": (lambda u, x, i: (u >> 3) + x, lambda u, x, i: (u >> 3) + x),
    "a cast": (lambda u, x, i: T.cast(u, "int32") * 3 + i, lambda u, x, i: u * 3 + i),
}


@pytest.mark.parametrize("place", ["all points", "rows", "columns", "gm"])
@pytest.mark.parametrize("what", MIXED)
@pytest.mark.parametrize("kind", ["uint8", "uint16", "int8"])
def test_narrow_elements_meet_int32_with_their_own_sign(kind: str, what: str, place: str) -> None:
    """In vectors, whether the operand is a tile, a row or a column that repeats, or a tensor in GM."""
    change, meaning = MIXED[what]

    @tilelang.jit(target="npuir", sanitize=True)
    def factory():
        @T.prim_func
        def main(U: T.Tensor((ROWS, COLUMNS), kind), X: T.Tensor((ROWS, COLUMNS), "int32"),
                 Z: T.Tensor((ROWS, COLUMNS), "int32")):
            with T.Kernel(1, is_npu=True) as (_, _):
                u = T.alloc_shared((ROWS, COLUMNS), kind)
                x = T.alloc_shared((ROWS, COLUMNS), "int32")
                z = T.alloc_shared((ROWS, COLUMNS), "int32")
                T.copy(U, u)
                T.copy(X, x)
                for i, j in T.Parallel(ROWS, COLUMNS):
                    if place == "all points":
                        z[i, j] = change(u[i, j], x[i, j], j)
                    elif place == "rows":
                        z[i, j] = change(u[0, j], x[i, j], j)
                    elif place == "columns":
                        z[i, j] = change(u[i, 0], x[i, j], j)
                    else:
                        z[i, j] = change(U[i, j], x[i, j], j)
                T.copy(z, Z)

        return main

    made = factory()
    assert vectorised(made)
    u, x, z = numbers(kind, (ROWS, COLUMNS)), numbers("int32", (ROWS, COLUMNS)) // 4, np.zeros((ROWS, COLUMNS), np.int32)
    made(u, x, z)
    wide = {"rows": u[:1], "columns": u[:, :1]}.get(place, u).astype(np.int64)
    wanted = meaning(np.broadcast_to(wide, x.shape), x.astype(np.int64), np.arange(COLUMNS))
    np.testing.assert_array_equal(z, wanted.astype(np.int32))


@pytest.mark.parametrize("kind", EVERY)
@pytest.mark.parametrize(("rows", "columns"), [(8, 7), (3, 33)])
def test_a_row_or_an_index_is_chosen(kind: str, rows: int, columns: int) -> None:
    """A row that repeats was converted as if it were the whole tile, which did not verify."""
    @tilelang.jit(target="npuir", sanitize=True)
    def factory():
        @T.prim_func
        def main(X: T.Tensor((48,), kind), Y: T.Tensor((rows, columns), kind), Z: T.Tensor((rows, columns), kind),
                 W: T.Tensor((rows, columns), "int64")):
            with T.Kernel(1, is_npu=True) as (_, _):
                x = T.alloc_shared((48,), kind)
                y = T.alloc_shared((rows, columns), kind)
                z = T.alloc_shared((rows, columns), kind)
                w = T.alloc_shared((rows, columns), "int64")
                T.copy(X, x)
                T.copy(Y, y)
                for i, j in T.Parallel(rows, columns):
                    z[i, j] = T.if_then_else(y[i, j] > 3, x[j], j)
                for i, j in T.Parallel(rows, columns):
                    w[i, j] = T.if_then_else(y[i, j] > 3, x[i], i * 3)
                T.copy(z, Z)
                T.copy(w, W)

        return main

    x, y = numbers(kind, (48,)), numbers(kind, (rows, columns))
    z, w = np.zeros((rows, columns), element_type(kind)), np.zeros((rows, columns), np.int64)
    factory()(x, y, z, w)
    i, j = np.ogrid[:rows, :columns]
    meet = np.int64 if "int" in kind else element_type(kind)
    for got, chosen, index, target in ((z, x[:columns], j, kind), (w, x[:rows, None], i * 3, "int64")):
        with np.errstate(all="ignore"):
            kept = np.where(y > 3, chosen.astype(meet), index.astype(meet))
        wanted = stored(kept, target, nearest=True)
        np.testing.assert_array_equal(got.astype(np.float64) if "int" not in target else got,
                                      wanted.astype(np.float64) if "int" not in target else wanted)
