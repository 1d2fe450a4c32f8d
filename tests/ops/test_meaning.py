"""The values of the table entries, to the bit: casts in every mode, wrapping, aliasing, strided destinations."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tilelang_npu.ops import dtype, operation, operations
from tilelang_npu.ops.meaning import kernel, reduction, ufunc
from tilelang_npu.ops.rounding import MODES, conversion, integral

F16, BF16, F32, I8, I16, I32, I64, U8 = (dtype(name) for name in ("f16", "bf16", "f32", "i8", "i16", "i32", "i64", "ui8"))


def candidates(kind: Any) -> np.ndarray:
    """Every finite number of a 16-bit float type, in order."""
    values = np.arange(1 << 16, dtype=np.uint16).view(kind)
    finite = values[np.isfinite(values.astype(np.float32))]
    return np.unique(finite.astype(np.float64))


def expected_narrow(x: float, numbers: np.ndarray, kind: Any, mode: str) -> float:
    """Rounding by its definition: among the two neighbours of x in the type."""
    if x in numbers:
        return x
    place = int(np.searchsorted(numbers, x))
    low, high = numbers[place - 1], numbers[place]
    if mode == "floor":
        return low
    if mode == "ceil":
        return high
    if mode == "trunc":
        return low if x > 0 else high
    bits = {float(v): int(np.asarray(v).astype(kind).view(np.uint16)) for v in (low, high)}
    if mode == "odd":
        return next(v for v, b in bits.items() if b & 1)
    down, up = Fraction(x) - Fraction(low), Fraction(high) - Fraction(x)
    if down != up:
        return low if down < up else high
    if mode == "round":
        return high if x > 0 else low
    return next(v for v, b in bits.items() if not b & 1)


@pytest.mark.parametrize("mode", ["rint", "round", "floor", "ceil", "trunc", "odd"])
@pytest.mark.parametrize(("target", "kind"), [(F16, np.float16), (BF16, ml_dtypes.bfloat16)])
def test_f32_to_narrow(rng: np.random.Generator, mode: str, target: Any, kind: Any) -> None:
    numbers = candidates(kind)
    inside = numbers[(np.abs(numbers) < 6e4)]
    picks = rng.choice(len(inside) - 1, 60)
    halves = (inside[picks] + inside[picks + 1]) / 2  # exact ties, representable in f32
    x = np.concatenate([halves, inside[picks], rng.standard_normal(60) * 10.0 ** rng.integers(-8, 4, 60)]).astype(np.float32)
    got = conversion(F32, target, mode)(x).astype(np.float64)
    assert got.tolist() == [expected_narrow(float(v), numbers, kind, mode) for v in x]


def test_narrow_specials() -> None:
    x = np.array([np.inf, -np.inf, np.nan, 1e6, -1e6, 65519.0, -0.0], np.float32)
    with np.errstate(over="ignore"):
        to_nearest, to_zero = (conversion(F32, F16, mode)(x).astype(np.float64) for mode in ("rint", "trunc"))
    np.testing.assert_array_equal(to_nearest, [np.inf, -np.inf, np.nan, np.inf, -np.inf, 65504, -0.0])
    np.testing.assert_array_equal(to_zero, [np.inf, -np.inf, np.nan, 65504, -65504, 65504, -0.0])


def test_integral_modes() -> None:
    x = np.array([0.5, -0.5, 1.5, -1.5, 2.5, 0.49999997, 8388609.0, 1.25, -1.25, 2.25], np.float32)
    expected = {"rint": [0, 0, 2, -2, 2, 0, 8388609, 1, -1, 2], "round": [1, -1, 2, -2, 3, 0, 8388609, 1, -1, 2],
                "floor": [0, -1, 1, -2, 2, 0, 8388609, 1, -2, 2], "ceil": [1, 0, 2, -1, 3, 1, 8388609, 2, -1, 3],
                "trunc": [0, 0, 1, -1, 2, 0, 8388609, 1, -1, 2], "odd": [1, -1, 1, -1, 3, 1, 8388609, 1, -1, 3]}
    for mode, values in expected.items():
        assert integral(x, mode).tolist() == values, mode


@pytest.mark.parametrize(("target", "low", "high"), [(I8, -128, 127), (I16, -(2**15), 2**15 - 1), (I32, -(2**31), 2**31 - 1),
                                                     (I64, -(2**63), 2**63 - 1), (U8, 0, 255)])
def test_float_to_integer_saturates(target: Any, low: int, high: int) -> None:
    x = np.array([1e30, -1e30, np.inf, -np.inf, np.nan, float(high), float(low), 3.7, -0.2], np.float32)
    got = [int(v) for v in conversion(F32, target, "trunc")(x)]
    assert got == [high, low, high, low, 0, high, low, 3, 0]


def test_truncation_with_overflow_wraps() -> None:
    assert conversion(I32, I8, "truncwithoverflow")(np.array([300, -129, 127], np.int32)).tolist() == [44, 127, 127]
    assert conversion(I32, I16, "rint")(np.array([70000, -70000, 5], np.int32)).tolist() == [32767, -32768, 5]


@pytest.mark.parametrize("mode", ["rint", "round", "floor", "ceil", "trunc", "odd"])
def test_integer_to_float_rounds_once(rng: np.random.Generator, mode: str) -> None:
    x = np.concatenate([rng.integers(-(2**62), 2**62, 200), [2**24 + 1, -(2**24 + 1), 2**25 + 2, 2**63 - 1, -(2**63)]])
    got = conversion(I64, F32, mode)(x)
    for value, made in zip(x.tolist(), got, strict=True):
        near = [Fraction(float(np.nextafter(made, np.float32(side)))) for side in (-np.inf, np.inf)]
        here = Fraction(float(made))
        if here == value:
            continue
        assert near[0] < value < near[1]
        if mode == "floor":
            assert here < value
        elif mode == "ceil":
            assert here > value
        elif mode == "trunc":
            assert abs(here) < abs(value)
        elif mode == "odd":
            assert int(made.view(np.uint32)) & 1
        else:
            other = near[1] if value > here else near[0]
            assert abs(here - value) <= abs(other - value)
            if abs(here - value) == abs(other - value):
                even = int(made.view(np.uint32)) & 1 == 0
                assert even if mode == "rint" else abs(here) > abs(value)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("target", ["f16", "bf16", "f32", "i8", "i16", "i32", "i64", "i1"])
@pytest.mark.parametrize("source", ["f16", "bf16", "f32", "i8", "i16", "i32", "i64", "i1"])
def test_every_cast_makes_its_type(source: str, target: str, mode: str) -> None:
    x = np.array([[0, 1, 3, -2, 100]]).astype(dtype(source).numpy)
    made = np.zeros((1, 5), dtype(target).numpy)
    kernel(operation("cast"), [dtype(source)], dtype(target), {"round_mode": mode})(made, x)
    if not (dtype(source).is_bool or dtype(target).is_bool):
        np.testing.assert_array_equal(made.astype(np.float32), x.astype(np.float32))
    else:
        np.testing.assert_array_equal(made.astype(np.float32) != 0, x.astype(np.float32) != 0)


def test_unsigned_reading() -> None:
    x = np.array([-1, 5], np.int8)
    assert conversion(I8, F16, "rint", unsigned=True)(x).tolist() == [255, 5]
    made = np.zeros(2, np.int8)
    to_unsigned = kernel(operation("cast"), [F32], I8, {"cast": "cast_unsigned", "round_mode": "trunc"})
    to_unsigned(made, np.array([200.5, -3], np.float32))
    assert made.view(np.uint8).tolist() == [200, 0]
    kernel(operation("max"), [I8, I8], I8, {"is_signed": False})(made, x, np.array([1, 6], np.int8))
    assert made.tolist() == [-1, 6]
    mask = np.zeros(2, np.bool_)
    kernel(operation("compare"), [I8, I8], dtype("i1"), {"compare_mode": "gt", "is_signed": False})(mask, x, 3)
    assert mask.tolist() == [True, True]


@pytest.mark.parametrize("name", ["add", "sub", "mul"])
@pytest.mark.parametrize("element", [I8, I16, I32])
def test_integers_wrap(name: str, element: Any) -> None:
    low, high = np.iinfo(element.numpy).min, np.iinfo(element.numpy).max
    a, b, out = np.array([high, low, 7], element.numpy), np.array([2, -1, 9], element.numpy), np.zeros(3, element.numpy)
    kernel(operation(name), [element, element], element)(out, a, b)
    exact = {"add": lambda x, y: x + y, "sub": lambda x, y: x - y, "mul": lambda x, y: x * y}[name]
    span = high - low + 1
    assert out.tolist() == [(exact(int(x), int(y)) - low) % span + low for x, y in zip(a, b, strict=True)]


def test_integer_division_truncates_exactly() -> None:
    a = np.array([-7, 7, -7, 2**62 + 1, -(2**63)], np.int64)
    b = np.array([2, -2, -2, 3, 1], np.int64)
    out = np.zeros(5, np.int64)
    kernel(operation("div"), [I64, I64], I64)(out, a, b)
    assert out.tolist() == [-3, -3, 3, (2**62 + 1) // 3, -(2**63)]
    kernel(operation("div"), [I64, I64], I64, {"isSigned": False})(out, a, b)
    assert out.tolist()[0] == (2**64 - 7) // 2


def test_shift_right_rounds_by_default() -> None:
    a, out = np.array([5, 7, -5, 6], np.int32), np.zeros(4, np.int32)
    kernel(operation("bitwise_rshift"), [I32, I32], I32)(out, a, 2)
    assert out.tolist() == [1, 2, -1, 2]
    kernel(operation("bitwise_rshift"), [I32, I32], I32, {"round": False})(out, a, 2)
    assert out.tolist() == [1, 1, -2, 1]


def test_shift_right_by_a_buffer_and_of_64_bits_never_rounds() -> None:
    """Both become loops of ``arith.shrsi``: 3 >> 1 is 1, while the instruction gives 2."""
    a = np.array([3, -3, 7, 8], np.int32)
    out = np.zeros_like(a)
    kernel(operation("bitwise_rshift"), [I32, I32], I32)(out, a, np.array([1, 1, 2, 0], np.int32))
    np.testing.assert_array_equal(out, [1, -2, 1, 8])
    wide, result = a.astype(np.int64), np.zeros(4, np.int64)
    kernel(operation("bitwise_rshift"), [I64, I32], I64)(result, wide, 1)
    np.testing.assert_array_equal(result, [1, -2, 3, 4])


@pytest.mark.parametrize("element", [F16, BF16, F32])
def test_destination_may_be_a_source_and_strided(rng: np.random.Generator, element: Any) -> None:
    held = rng.random((6, 20)).astype(element.numpy)
    a, b = held[:, ::2], held[:, 1::2]
    expected = (a.astype(np.float32) + b.astype(np.float32)).astype(element.numpy)
    other = b.copy()
    kernel(operation("add"), [element, element], element)(a, a, b)
    np.testing.assert_array_equal(a, expected)
    np.testing.assert_array_equal(b, other)


def test_overlapping_shift_reads_before_it_writes(rng: np.random.Generator) -> None:
    held = rng.random(17).astype(np.float32)
    expected = held[:-1] * held[1:]
    kernel(operation("mul"), [F32, F32], F32)(held[1:], held[:-1], held[1:])
    np.testing.assert_array_equal(held[1:], expected)


@pytest.mark.parametrize("name", ["exp", "sqrt", "rsqrt", "reciprocal", "relu", "abs"])
def test_f16_is_rounded_once(rng: np.random.Generator, name: str) -> None:
    x = (rng.random(500) * 8 + 0.01).astype(np.float16)
    out = np.zeros_like(x)
    kernel(operation(name), [F16], F16)(out, x)
    meaning = operation(name).meaning
    np.testing.assert_array_equal(out, meaning(x.astype(np.float32)).astype(np.float16))


def test_reductions(rng: np.random.Generator) -> None:
    x = rng.integers(-9, 9, (3, 8)).astype(np.float16)
    out = np.zeros((3, 1), np.float16)
    for mode, function in (("sum", np.sum), ("max", np.max), ("min", np.min)):
        entry = reduction(mode)
        assert entry is not None
        kernel(entry, [F16], F16)(out, x, (1,))
        np.testing.assert_array_equal(out, function(x.astype(np.float32), axis=1, keepdims=True))
    assert reduction("nothing") is None
    place = np.zeros((3, 1), np.int32)
    operation("reduce_with_index").meaning([out, place], [x], {"mode": "max_with_index_right", "dim": 1})
    assert all(x[row, place[row, 0]] == x[row].max() and (x[row, place[row, 0] + 1:] < x[row].max()).all() for row in range(3))


def test_direct_ufuncs_are_the_same(rng: np.random.Generator) -> None:
    """Where a ufunc is handed out instead of a kernel, both compute the same."""
    count = 0
    for entry in operations().values():
        for element in entry.dtypes:
            inputs = getattr(entry, "inputs", 1)
            sources = [element] * (inputs if isinstance(inputs, int) else len(inputs))
            found = ufunc(entry, sources, element)
            if found is None:
                continue
            inputs = [(rng.random(40) * 5 + 1).astype(element.numpy) for _ in sources]
            one, two = np.zeros(40, element.numpy), np.zeros(40, element.numpy)
            found(*inputs, out=one)
            kernel(entry, sources, element)(two, *inputs)
            np.testing.assert_array_equal(one, two)
            count += 1
    assert count > 20


def test_unknown_mode() -> None:
    with pytest.raises(ValueError, match="unknown round mode 'up'"):
        conversion(F32, F16, "up")
