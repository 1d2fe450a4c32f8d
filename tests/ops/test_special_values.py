"""Operations on infinities, NaN, zeros of both signs, subnormal numbers, the ends of the integers, and zero divisors.

For cases that the device's documents do not define, docs/precision.md defines the result, and these tests check it.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from ops import reference, surface
from ops.conftest import Batch
from ops.test_values import SHIFTS, expected, is_thorough, legal_cases
from tilelang_npu import TileError, ops
from tilelang_npu.ops import DType, dtype

ANY_ZERO = ("max", "min", "clamp", "clamp_min", "clamp_max", "relu", "leaky_relu")
"""Operations whose zeros may have either sign, as equal elements are chosen from."""


def specials(element: DType, name: str, position: int) -> np.ndarray:
    kind = element.numpy
    if element.is_bool:
        return np.array([False, True])
    if element.is_integer:
        low, high = int(np.iinfo(kind).min), int(np.iinfo(kind).max)
        if name in SHIFTS and position == 1:
            values = [0, 1, element.bits - 1, element.bits, element.bits + 1, 100, *([-1] if element.is_signed else [])]
        else:
            values = [low, low + 1, *([-7, -2, -1] if element.is_signed else []), 0, 1, 2, 7, high - 1, high]
        return np.array(values, kind)
    info: Any = ml_dtypes.finfo(kind) if kind == ml_dtypes.bfloat16 else np.finfo(kind)
    ends = [float(info.max), float(info.tiny), float(info.smallest_subnormal), float(info.eps)]
    values = [0.0, 1.0, 0.5, 3.0, 100.0, np.inf, *ends]
    return np.array([*values, *(-value for value in values), np.nan]).astype(kind)


@pytest.mark.parametrize(("entry", "name", "element"), [
    case for case in legal_cases(ops.Elementwise) if is_thorough(case.values[0], case.values[1])])
def test_every_pair(batch: Callable[[str], Batch], entry: ops.Elementwise, name: str, element: DType) -> None:
    """All inputs of a unary operation, all pairs of a binary one; third inputs take each value in turn."""
    calls = batch(surface.dialect_of(name))
    kinds = surface.source_types(entry, element)
    sets = [specials(kind, entry.name, position) for position, kind in enumerate(kinds)]
    pairs = np.array(list(itertools.product(*[range(len(values)) for values in sets[:2]])))
    inputs = [values[pairs[:, position]] for position, values in enumerate(sets[:2])]
    inputs += [np.resize(values, len(pairs)) for values in sets[2:]]
    held = np.resize(specials(surface.result_type(entry, element), "", 0), len(pairs))
    target = calls.hold(held)
    statement = surface.elementwise_call(name, entry, target, [calls.hold(array) for array in inputs])
    wanted = expected(entry, inputs, held)
    ulps = reference.ULPS.get(entry.name, 0)
    calls.call(statement, target, wanted, ulps or (1 if entry.name in ANY_ZERO and element.is_float else 0))
    calls.run()
    if entry.name in ANY_ZERO and element.is_float:
        np.testing.assert_array_equal(calls.arrays[target].astype(np.float64), wanted.astype(np.float64))


def test_the_references_say_what_is_documented() -> None:
    """The figures of docs/precision.md, worked out by hand: the tests above go by these functions."""
    of = reference.ELEMENTWISE
    low = -(2**31)
    a = np.array([low, -7, 7, low, 5], np.int32)
    b = np.array([-1, 2, -2, 0, 0], np.int32)
    assert of["div"](a, b).tolist() == [low, -3, -3, 0, 0]
    assert of["mod"](a, b).tolist() == [0, -1, 1, 0, 0]
    assert of["modui"](a, b).tolist() == [low, 1, 7, 0, 0]
    assert of["abs"](a).tolist() == [low, 7, 7, low, 5]
    one, eight = np.array([1, 1, -1, 3], np.int32), np.array([8, 8, -8, -8], np.int32)
    amounts = np.array([31, 32, 33, -1], np.int32)
    assert of["bitwise_lshift"](one, amounts).tolist() == [low, 0, 0, 0]
    assert of["bitwise_rshift"](eight, np.array([32, 1, 40, -1], np.int32)).tolist() == [0, 4, -1, -1]
    bases, exponents = np.array([2, -1, -1, 0, 2], np.int32), np.array([-1, -3, -2, -1, 31], np.int32)
    assert of["pow"](bases, exponents).tolist() == [0, -1, 1, 0, low]
    x = np.array([0.0, -0.0, np.inf, -np.inf, np.nan], np.float32)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(of["reciprocal"](x), [np.inf, -np.inf, 0, -0.0, np.nan])
        np.testing.assert_array_equal(of["relu"](x), [0, 0, np.inf, 0, np.nan])
        np.testing.assert_array_equal(of["ln"](x), [-np.inf, -np.inf, np.inf, np.nan, np.nan])
        np.testing.assert_array_equal(of["ilogb"](x), [-np.inf, -np.inf, np.inf, np.inf, np.nan])
        np.testing.assert_array_equal(of["max"](x, x[::-1].copy()), [np.nan, 0, np.inf, 0, np.nan])


@pytest.mark.parametrize("kind", ["int8", "int16", "int32"])
def test_rounding_shifts_beyond_the_width(batch: Callable[[str], Batch], kind: str) -> None:
    """A shift right that rounds gives the exact quotient rounded to nearest, also by the width and more."""
    calls, values = batch("npuir"), specials(dtype(kind), "", 0)
    source = calls.hold(values)
    for amount in (values.itemsize * 8, values.itemsize * 8 + 1, 100):
        target = calls.hold(values)
        wanted = reference.integers(lambda a, n=amount: (a + (1 << (n - 1))) >> n)(values)
        calls.call(f"T.vshr({source}, {amount}, {target})", target, wanted)
    calls.run()


@pytest.mark.parametrize("kind", ["float16", "float32"])
@pytest.mark.parametrize("mode", ["sum", "max", "min"])
def test_reductions_of_specials(batch: Callable[[str], Batch], mode: str, kind: str) -> None:
    """NaN wins; infinities of both signs sum to NaN; sums of half precision overflow at the end only."""
    calls = batch("npuir")
    large = 60000.0
    rows = np.array([[1, 2, np.nan, 3], [np.inf, 1, 2, 3], [-np.inf, 1, np.inf, 3], [large, large, -large, -large],
                     [-0.0, -0.0, -0.0, -0.0]]).astype(kind)
    given = np.tile(rows, (1, 9))
    source, target = calls.hold(given), calls.hold(np.zeros((5, 1), kind))
    with np.errstate(all="ignore"):
        wanted = {"sum": np.sum, "max": np.max, "min": np.min}[mode](given.astype(np.float64), axis=1, keepdims=True)
    calls.call(f"T.reduce_{mode}({source}, {target})", target, wanted.astype(kind))
    calls.run()


@pytest.mark.parametrize("mode", ["eq", "ne", "lt", "gt", "ge", "le"])
def test_comparisons_of_nan(batch: Callable[[str], Batch], mode: str) -> None:
    """NaN is unequal to everything and in no order."""
    calls = batch("npuir")
    values = specials(dtype("float16"), "", 0)
    a, b = (np.repeat(values, len(values)), np.tile(values, len(values)))
    left, right, target = calls.hold(a), calls.hold(b), calls.hold(np.zeros(a.shape, np.bool_))
    test = {"eq": lambda x, y: x == y, "ne": lambda x, y: x != y, "lt": lambda x, y: x < y, "gt": lambda x, y: x > y,
            "ge": lambda x, y: x >= y, "le": lambda x, y: x <= y}[mode]
    wanted = np.array([test(float(x), float(y)) for x, y in zip(a, b, strict=True)])
    calls.call(f"T.vcmp({left}, {right}, {target}, {mode!r})", target, wanted)
    calls.run()


@pytest.mark.parametrize(("statement", "problem"), [
    ("T.vgather(a, d, i)", "index 8, at position 2, is out of bounds: valid are 0 to 7"),
    ("T.vgather(a, d, j)", "index -1, at position 1, is out of bounds: valid are 0 to 7"),
    ("T.tile.gather(d, a, k, 0)", "byte offset 6, at position 1, is not a multiple of the element size, 4 bytes"),
    ("T.tile.gather(d, a, k, 64)", "byte offset 64, at position 0, is out of bounds: valid are 0 to 31"),
    ("T.tile.gather_mask(d, a, u)", "index 9, at position 1, is out of bounds: valid are 0 to 7"),
])
def test_positions_outside(batch: Callable[[str], Batch], statement: str, problem: str) -> None:
    """Data that names an element which is not there stops the run at the line; nothing is wrapped or clipped."""
    calls = batch("npuir")
    names = {"a": np.arange(8, dtype=np.float32), "d": np.zeros(3, np.float32), "i": np.array([0, 1, 8], np.int32),
             "j": np.array([0, -1, 8], np.int32), "k": np.array([0, 6, 4], np.uint32), "u": np.array([7, 9, 1], np.uint32)}
    held = {name: calls.hold(array) for name, array in names.items()}
    inside = "".join(held.get(part, part) for part in re.split(r"\b(\w+)\b", statement.split("(", 1)[1]))
    calls.call(f"{statement.split('(', 1)[0]}({inside}", held["d"], names["d"])
    with pytest.raises(TileError) as caught:
        calls.run()
    assert caught.value.code == "T502"
    assert caught.value.notes == (problem,)
    assert caught.value.location is not None
    assert statement.split("(", 1)[0] in caught.value.location.source()
