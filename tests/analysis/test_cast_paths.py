"""Conversions as sequences of steps: the result is that of the conversion, on both kinds of vector units."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ops.test_casts import converted, inputs, narrowed
from tilelang_npu.analysis.cast_paths import BITS, CLAMP, ZERO_EXTEND, cast_path
from tilelang_npu.dialects.hivm.casts import cast_name, is_supported_cast
from tilelang_npu.dialects.ir.mlir_dtypes import mlir_type
from tilelang_npu.ops import DType, dtype
from tilelang_npu.ops.rounding import conversion

INTEGERS = [dtype(f"{sign}int{bits}") for sign in ("", "u") for bits in (8, 16, 32, 64)]
FLOATS = [dtype(name) for name in ("float16", "bfloat16", "float32")]
TYPES = [dtype("bool"), *INTEGERS, *FLOATS]
MODES = ("rint", "round", "floor", "ceil", "trunc")
WRAPPING = "truncwithoverflow"


def walked(values: np.ndarray, source: DType, target: DType, mode: str, on_registers: bool) -> Any:
    """Returns the result of the steps of a conversion on single values, and checks that the unit has each cast."""
    here = source
    for step in cast_path(source, target, mode, on_registers) or ():
        if step.how == BITS:
            assert step.kind.bits == here.bits
            values = values.view(step.kind.numpy)
        elif step.how == ZERO_EXTEND:
            assert step.of is not None
            values = values & values.dtype.type((1 << step.of.bits) - 1)
        elif step.how == CLAMP:
            assert step.of is not None
            values = values.clip(0, (1 << step.of.bits) - 1).astype(values.dtype)
        else:
            name = cast_name(mlir_type(here), mlir_type(step.kind), step.how, unsigned=False)
            assert is_supported_cast(name, register_based=on_registers), name
            values = conversion(here, step.kind, step.how)(values)
        here = step.kind
    assert here == target
    return values


@pytest.mark.parametrize("on_registers", [False, True])
@pytest.mark.parametrize("source", TYPES, ids=str)
def test_unsigned_types(source: DType, on_registers: bool, rng: np.random.Generator) -> None:
    """From and to unsigned types: the same number if the type can represent it, the nearest one for floats."""
    values = inputs(rng, source)
    for target in TYPES:
        if target == source or not any(kind.is_integer and not kind.is_signed for kind in (source, target)):
            continue
        for mode in MODES:
            if cast_path(source, target, mode, on_registers) is None:
                continue
            with np.errstate(all="ignore"):
                found = walked(values, source, target, mode, on_registers)
            wanted = converted(values, target, mode)
            if (source, target, mode, on_registers) == ("uint32", "bfloat16", "rint", True):  # one instruction, one rounding
                wanted = np.array([narrowed(int(value), target.numpy, mode) for value in values]).astype(target.numpy)
            np.testing.assert_array_equal(found, wanted, f"{source} to {target}, {mode}")


WITHOUT = {(kind, "uint64") for kind in ("float16", "bfloat16", "float32")} | {
    ("uint64", kind) for kind in ("float16", "bfloat16", "float32")}
"""Pairs between which a ``T.Parallel`` goes point by point."""


@pytest.mark.parametrize("on_registers", [False, True])
def test_every_conversion_of_a_parallel_loop_is_there(on_registers: bool) -> None:
    """Widening keeps the value, floats round, and narrowing integers wrap."""
    for source in TYPES:
        for target in TYPES:
            if source == target or target.is_bool:
                continue
            narrows = source.is_integer and target.is_integer and target.bits <= source.bits
            signed = source.is_integer and source.is_signed and target.is_integer and not target.is_signed
            mode = WRAPPING if narrows or signed else "rint"
            there = cast_path(source, target, mode, on_registers) is not None
            assert there is ((str(source), str(target)) not in WITHOUT), (source, target)


@pytest.mark.parametrize("on_registers", [False, True])
@pytest.mark.parametrize("source", INTEGERS, ids=str)
def test_integers_keep_their_low_bits(source: DType, on_registers: bool, rng: np.random.Generator) -> None:
    """Under truncwithoverflow, whatever the signs and widths; a 950 saturated from int64."""
    values = inputs(rng, source)
    for target in INTEGERS:
        if target == source or cast_path(source, target, WRAPPING, on_registers) is None:
            continue
        found = walked(values, source, target, WRAPPING, on_registers)
        np.testing.assert_array_equal(found, values.astype(target.numpy), f"{source} to {target}")


@pytest.mark.parametrize("on_registers", [False, True])
def test_no_integer_goes_by_way_of_a_float_that_does_not_hold_it(on_registers: bool) -> None:
    """uint32 to int64 went through float32 on a 950."""
    for source in INTEGERS:
        for target in INTEGERS:
            for step in cast_path(source, target, "rint", on_registers) or ():
                assert not step.kind.is_float or source.bits == 8


def test_a_float_is_rounded_once() -> None:
    """To uint8 by way of float16, which rounds to odd: 127.4999 does not become 127.5, and then 128."""
    values = np.array([127.4999, 127.5001, 0.49999, 1e-9, 254.999, -0.5001, 1e9, -1e9, np.nan], np.float32)
    for mode, wanted in (("rint", [127, 128, 0, 0, 255, 0, 255, 0, 0]), ("floor", [127, 127, 0, 0, 254, 0, 255, 0, 0]),
                         ("ceil", [128, 128, 1, 1, 255, 0, 255, 0, 0])):
        with np.errstate(all="ignore"):
            found = walked(values, dtype("float32"), dtype("uint8"), mode, False)
        assert found.tolist() == wanted
