"""``T.vcast`` and ``T.tile.cast`` from every element type to every other under every rounding mode: right, or refused."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilelang_npu as tilelang
from ops import surface
from ops.conftest import Batch
from ops.reference import assert_same
from tilelang_npu import TileError, ops
from tilelang_npu.analysis.cast_paths import cast_path
from tilelang_npu.ops import DType, dtype

MODES = ("rint", "round", "floor", "ceil", "trunc", "odd")
SOURCES = [element for element in surface.ALL_TYPES if str(element) not in ("int4", "float64")]


def whole(x: float, mode: str) -> int:
    """Rounds a finite number to an integer: ``round`` rounds halves away from zero, ``odd`` rounds inexact values to the odd
    neighbour."""
    low, high = math.floor(x), math.ceil(x)
    if mode == "floor" or low == high:
        return low
    if mode == "ceil":
        return high
    if mode == "trunc":
        return low if x > 0 else high
    if mode == "odd":
        return low if low % 2 else high
    rest = Fraction(x) - low
    if rest != Fraction(1, 2):
        return low if rest < Fraction(1, 2) else high
    if mode == "round":
        return high if x > 0 else low
    return low if low % 2 == 0 else high


def neighbours(x: Fraction, kind: np.dtype[Any]) -> tuple[float, float]:
    """The numbers of a float type at or below, and at or above, a number within its range."""
    with np.errstate(all="ignore"):
        near = np.asarray(float(x)).astype(np.float32).astype(kind)
    bits = int(near.view(f"u{kind.itemsize}"))
    found = {0.0: 0.0}
    for step in range(-2, 3):
        moved = (bits + step) & ((1 << 8 * kind.itemsize) - 1)
        value = float(np.asarray(moved, f"u{kind.itemsize}").view(kind).astype(np.float64))
        if not math.isnan(value):
            found[value] = value
    below = max(value for value in found if value == -math.inf or (math.isfinite(value) and Fraction(value) <= x))
    above = min(value for value in found if value == math.inf or (math.isfinite(value) and Fraction(value) >= x))
    return below, above


def narrowed(value: float | int, kind: np.dtype[Any], mode: str) -> float:
    """Rounds a number to a float type, by the definition of the mode; results of zero keep the sign."""
    if value == 0 or (isinstance(value, float) and not math.isfinite(value)):
        return float(value)
    return math.copysign(_chosen(Fraction(value), kind, mode), value)


def _chosen(x: Fraction, kind: np.dtype[Any], mode: str) -> float:
    low, high = neighbours(x, kind)
    if low == high:
        return low
    if mode in ("floor", "ceil", "trunc"):
        return low if mode == "floor" or (mode == "trunc" and x > 0) else high
    odd = {place: int(np.asarray(place).astype(kind).view(f"u{kind.itemsize}")) & 1 for place in (low, high)}
    if mode == "odd":
        return low if odd[low] else high
    largest = np.asarray(float((ml_dtypes.finfo if kind.itemsize == 2 else np.finfo)(kind).max)).astype(kind)
    step = Fraction(float(largest)) - Fraction(float(np.nextafter(largest, np.zeros((), kind))))
    beyond = Fraction(float(largest)) + step  # the next number if the range did not end
    left, right = (Fraction(low) if math.isfinite(low) else -beyond), (Fraction(high) if math.isfinite(high) else beyond)
    if x - left != right - x:
        return low if x - left < right - x else high
    if mode == "round":
        return high if x > 0 else low
    return high if odd[low] else low


def converted(values: np.ndarray, target: DType, mode: str) -> np.ndarray:
    """Returns each element in the target type: floats out of the range of an integer type saturate; see docs/precision.md."""
    kind, source = target.numpy, dtype(values.dtype)
    if target.is_bool:
        return values.astype(np.float64) != 0 if source.is_float else values != 0
    given = [bool(v) if source.is_bool else float(v) if source.is_float else int(v) for v in values]
    if target.is_float:
        if source.is_integer and target.bits == 16 and source.bits >= 32:  # by way of float32
            given = [float(narrowed(v, np.dtype(np.float32), "rint")) for v in given]
        with np.errstate(all="ignore"):
            return np.array([narrowed(v, kind, mode) for v in given]).astype(kind)
    low, high = int(np.iinfo(kind).min), int(np.iinfo(kind).max)
    if source.is_float:
        found = [0 if math.isnan(v) else (high if v > 0 else low) if math.isinf(v) else whole(v, mode) for v in given]
        return np.array([min(max(v, low), high) for v in found], kind)
    saturates = (str(source), str(target)) in (("int32", "int16"), ("int64", "int32"))
    if saturates:
        return np.array([min(max(v, low), high) for v in given], kind)
    return np.array([(int(v) - low) % (1 << target.bits) + low for v in given], kind)


def inputs(rng: np.random.Generator, element: DType) -> np.ndarray:
    kind = element.numpy
    if element.is_bool:
        return np.array([False, True, True])
    if element.is_integer:
        low, high = int(np.iinfo(kind).min), int(np.iinfo(kind).max)
        small = [v for v in (-129, -128, -7, -1, 0, 1, 2, 127, 128, 255, 256, 2049, 65504, 2**24 + 1, 2**25 + 2, 2**31 - 1,
                             2**31) if low <= v <= high]
        wide = rng.integers(low, high, 40, dtype=np.uint64 if low == 0 else np.int64, endpoint=True).tolist()
        return np.array([low, high, *small, *wide], kind)
    with np.errstate(all="ignore"):
        halves = np.arange(-5, 6) + 0.5
        some = rng.standard_normal(60) * 10.0 ** rng.integers(-9, 11, 60)
        ends = [0.0, -0.0, np.inf, -np.inf, np.nan, 0.49999997, 65519.0, 65520.0, 65536.0, 2.0**31, -(2.0**31), 2.0**63, 127.5,
                128.0, -128.5, 255.5, 3e38, 1 + 2.0**-11, 1 + 2.0**-8, 1 + 3 * 2.0**-11, 2.0**-24, 2.0**-25, 2.0**-25 * 3,
                1e-40]
        return np.concatenate([halves, some, ends]).astype(np.float32).astype(kind)


@pytest.mark.parametrize("origin", SOURCES, ids=str)
def test_values(batch: Callable[[str], Batch], rng: np.random.Generator, origin: DType) -> None:
    """All conversions that there are from a type, in one kernel: to the bit."""
    calls, values = batch("npuir"), inputs(rng, origin)
    place = calls.hold(values)
    count = 0
    for target in SOURCES:
        for mode in MODES:
            if target != origin and cast_path(origin, target, mode) is not None:
                held = calls.hold(np.zeros(values.shape, target.numpy))
                calls.call(f"T.vcast({place}, {held}, round_mode={mode!r})", held, converted(values, target, mode))
                count += 1
    if count:
        calls.run()
    assert count or "uint" in str(origin) or str(origin).startswith("float8"), "nothing is converted from it"


@pytest.mark.parametrize(("target", "word"), [
    ("float16", "NONE"), ("float16", "RINT"), ("int32", "FLOOR"), ("int32", "CEIL"), ("int16", "ROUND"), ("int64", "TRUNC"),
    ("float16", "ODD"), ("bfloat16", "ROUND")])
def test_ascendc_names(batch: Callable[[str], Batch], rng: np.random.Generator, target: str, word: str) -> None:
    """The modes of ``T.tile.cast``, and a count of leading elements; the others stay."""
    calls, values, kind = batch("ascendc"), inputs(rng, dtype("float32")), dtype(target)
    wanted = converted(values, kind, "rint" if word == "NONE" else word.lower())
    place, held = calls.hold(values), calls.hold(np.zeros(values.shape, kind.numpy))
    calls.call(f"T.tile.cast({held}, {place}, 'CAST_{word}', {values.size})", held, wanted)
    part = calls.hold(np.ones(values.shape, kind.numpy))
    calls.call(f"T.tile.cast({part}, {place}, 'CAST_{word}', 37)", part,
               np.concatenate([wanted[:37], np.ones(values.size - 37, kind.numpy)]))
    calls.run()


@pytest.mark.parametrize("origin", SOURCES, ids=str)
def test_what_there_is_not_is_refused(batch: Callable[[str], Batch], origin: DType) -> None:
    """A conversion without a way is refused with both types; a mode that a conversion does not have, with the mode."""
    for target in SOURCES:
        if target == origin:
            continue
        missing = [mode for mode in MODES if cast_path(origin, target, mode) is None]
        for mode in missing[:2]:
            calls = batch("npuir")
            place, held = calls.hold(np.zeros(8, origin.numpy)), calls.hold(np.zeros(8, target.numpy))
            calls.call(f"T.vcast({place}, {held}, round_mode={mode!r})", held, np.zeros(8, target.numpy))
            with pytest.raises(TileError) as caught:
                calls.run()
            error = caught.value
            shown = str(error)
            assert error.code in ("T110", "T234"), shown
            assert error.location is not None
            text = error.location.source()
            if "float8" in str(target) and origin in ops.operation("cast").dtypes:  # its copy is refused already
                assert "T.copy(" in text, shown
                assert "compile for Ascend910_95" in error.help
                continue
            assert f"T.vcast({place}, {held}" in text, shown
            assert str(origin) in shown, shown
            assert str(target) in shown, shown
            assert error.help, shown


def test_into_a_repeated_row(batch: Callable[[str], Batch], rng: np.random.Generator) -> None:
    """A cast repeats a unit axis, as any elementwise operation does."""
    calls = batch("npuir")
    row = rng.standard_normal((1, 33)).astype(np.float32)
    source, target = calls.hold(row), calls.hold(np.zeros((5, 33), np.float16))
    calls.call(f"T.vcast({source}, {target})", target, np.broadcast_to(row.astype(np.float16), (5, 33)))
    calls.run()


def test_the_reference_itself() -> None:
    """Figures worked out by hand."""
    x = np.array([0.5, 1.5, -0.5, -2.5, 300.0, np.nan], np.float32)
    assert converted(x, dtype("int8"), "rint").tolist() == [0, 2, 0, -2, 127, 0]
    assert converted(x, dtype("int8"), "round").tolist() == [1, 2, -1, -3, 127, 0]
    assert converted(x, dtype("int8"), "odd").tolist() == [1, 1, -1, -3, 127, 0]
    assert_same(converted(np.array([2049.0, 65519.0, 65520.0], np.float32), dtype("float16"), "rint"),
                np.array([2048, 65504, np.inf], np.float16))
    assert_same(converted(np.array([2049.0, 65535.0, -65535.0], np.float32), dtype("float16"), "trunc"),
                np.array([2048, 65504, -65504], np.float16))
    assert converted(np.array([300, -129], np.int32), dtype("int16"), "rint").tolist() == [300, -129]
    assert converted(np.array([70000, -70000], np.int32), dtype("int16"), "rint").tolist() == [32767, -32768]
    assert converted(np.array([300, -129], np.int32), dtype("int8"), "rint").tolist() == [44, 127]


@pytest.mark.parametrize("element", ["float8_e4m3fn", "float8_e5m2", "float64"])
@pytest.mark.parametrize("statement", ["T.copy(x, y)", "T.fill(x, 1)", "T.clear(y)", "T.vbrc(c, x)"])
def test_types_that_nothing_moves(source: Any, element: str, statement: str) -> None:
    """The type is refused at the copy or fill, with the buffer's name."""
    main = source(surface.kernel_text([f"{name} = T.alloc_ub((4, {size}), {element!r})" for name, size in (
        ("x", 8), ("y", 8), ("c", 1))] + [statement])).main
    with pytest.raises(TileError, match=f"has elements of {element}") as caught:
        tilelang.compile(main, target="npuir")
    assert caught.value.code == "T110"
    assert caught.value.location is not None
    assert statement in caught.value.location.source()
