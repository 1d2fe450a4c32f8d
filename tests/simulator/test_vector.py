"""Vector ops of the planned form against NumPy: element types, scalars, broadcasts, transposes, reductions, the rest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from simulator import texts
from tilelang_npu.dialects.text import parse_module
from tilelang_npu.ops import dtype
from tilelang_npu.simulator import Launch, simulate


def mlir(array: np.ndarray) -> str:
    return dtype(array.dtype).mlir


def shape(array: np.ndarray) -> str:
    return "x".join(map(str, array.shape))


def vector_module(inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray], op: str, constants: str = "") -> str:
    """Load the inputs to %i0, %i1 …, run ``op`` (which may name the types as $i0, $o0 …), store %o0 …"""
    lines, args, address = [constants], [], 0
    for prefix, arrays in (("i", inputs), ("o", outputs)):
        for number, array in enumerate(arrays):
            name = f"{prefix}{number}"
            outside, inside = (f"memref<{shape(array)}x{mlir(array)}, {space}>" for space in (texts.GM, texts.UB))
            args.append(f"%g{name}: {outside}")
            lines.append(texts.tile(name, address, shape(array), mlir(array)))
            address += -(-array.nbytes // 32) * 32
            op = op.replace(f"${name}", inside)
            if prefix == "i":
                lines.append(f"    hivm.hir.load ins(%g{name} : {outside}) outs(%{name} : {inside})")
    lines += [texts.sync("MTE2", "V"), op, texts.sync("V", "MTE3")]
    for number, array in enumerate(outputs):
        outside, inside = (f"memref<{shape(array)}x{mlir(array)}, {space}>" for space in (texts.GM, texts.UB))
        lines.append(f"    hivm.hir.store ins(%o{number} : {inside}) outs(%go{number} : {outside})")
    return texts.module(texts.kernel("AIV", args, "\n".join([*lines, "    hivm.hir.pipe_barrier[<PIPE_ALL>]"])))


def run(inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray], op: str, constants: str = "",
        hazards: Sequence[str] = ()) -> Launch:
    launch = simulate(parse_module(vector_module(inputs, outputs, op, constants)), [*inputs, *outputs], blocks=1, hazards=True)
    assert [hazard.code for hazard in launch.hazards] == list(hazards)
    return launch


def numbers(rng: np.random.Generator, size: tuple[int, ...], element: Any) -> np.ndarray:
    kind = np.dtype(element)
    if kind.kind in "iu":
        return rng.integers(1, 100, size).astype(kind)
    if kind == np.bool_:
        return rng.integers(0, 2, size).astype(kind)
    return (rng.random(size) * 3 + 0.25).astype(kind)


@pytest.mark.parametrize("element", [np.float16, np.float32, np.int32])
@pytest.mark.parametrize(("name", "order"), [("vadd", 1), ("vsub", 1), ("vsub", 0), ("vmul", 1), ("vmax", 1)])
def test_scalar_operands(rng: np.random.Generator, element: Any, name: str, order: int) -> None:
    a = numbers(rng, (5, 16), element)
    out = np.zeros_like(a)
    kind = mlir(a)
    literal = "3" if kind == "i32" else "1.5"
    operands = ("%i0, %s", f"$i0, {kind}") if order else ("%s, %i0", f"{kind}, $i0")
    run([a], [out], f"    hivm.hir.{name} ins({operands[0]} : {operands[1]}) outs(%o0 : $o0)",
        f"    %s = arith.constant {literal} : {kind}")
    scalar = a.dtype.type(float(literal))
    function = {"vadd": np.add, "vsub": np.subtract, "vmul": np.multiply, "vmax": np.maximum}[name]
    np.testing.assert_array_equal(out, function(a, scalar) if order else function(scalar, a))


@pytest.mark.parametrize(("left", "right"), [((8, 1), (8, 32)), ((8, 32), (1, 32)), ((1, 1), (8, 32))])
def test_broadcast(rng: np.random.Generator, left: tuple[int, int], right: tuple[int, int]) -> None:
    a, b = numbers(rng, left, np.float32), numbers(rng, right, np.float32)
    out = np.zeros((8, 32), np.float32)
    used = [axis for axis in (0, 1) if left[axis] == 1 or right[axis] == 1]
    run([a, b], [out], f"    hivm.hir.vadd ins(%i0, %i1 : $i0, $i1) outs(%o0 : $o0) broadcast = {used}")
    np.testing.assert_array_equal(out, a + b)


def test_transposed_operands(rng: np.random.Generator) -> None:
    a, b = (numbers(rng, (4, 8, 16), np.float32) for _ in range(2))
    out = np.zeros((8, 4, 16), np.float32)
    run([a, b], [out], "    hivm.hir.vmul ins(%i0, %i1 : $i0, $i1) outs(%o0 : $o0) transpose = [1, 0, 2]")
    np.testing.assert_array_equal(out, (a * b).transpose(1, 0, 2))


@pytest.mark.parametrize("mode", ["eq", "ne", "lt", "gt", "ge", "le"])
@pytest.mark.parametrize("element", [np.float16, np.float32, np.int32])
def test_compare_and_select(rng: np.random.Generator, mode: str, element: Any) -> None:
    a, b = (rng.integers(-2, 3, (3, 33)).astype(element) for _ in range(2))
    mask, out = np.zeros((3, 33), np.bool_), np.zeros((3, 33), element)
    run([a, b], [mask, out], f"""    hivm.hir.vcmp ins(%i0, %i1 : $i0, $i1) outs(%o0 : $o0) compare_mode = <{mode}>
{texts.BARRIER}
    hivm.hir.vsel ins(%o0, %i0, %i1 : $o0, $i0, $i1) outs(%o1 : $o1)""")
    compared = {"eq": a == b, "ne": a != b, "lt": a < b, "gt": a > b, "ge": a >= b, "le": a <= b}[mode]
    np.testing.assert_array_equal(mask, compared)
    np.testing.assert_array_equal(out, np.where(compared, a, b))


def test_cast_rounds(rng: np.random.Generator) -> None:
    a = np.array([[0.5, 1.5, 2.5, -0.5, -1.5, 0.49999997, 3e9, -3e9]], np.float32)
    for mode, expected in (("rint", [0, 2, 2, 0, -2, 0]), ("round", [1, 2, 3, -1, -2, 0]), ("floor", [0, 1, 2, -1, -2, 0]),
                           ("ceil", [1, 2, 3, 0, -1, 1]), ("trunc", [0, 1, 2, 0, -1, 0])):
        out = np.zeros(a.shape, np.int32)
        run([a], [out], f"    hivm.hir.vcast ins(%i0 : $i0) outs(%o0 : $o0) round_mode = <{mode}>")
        assert out[0].tolist() == [*expected, 2**31 - 1, -(2**31)]
    half = np.zeros(a.shape, np.float16)
    run([a / 3], [half], "    hivm.hir.vcast ins(%i0 : $i0) outs(%o0 : $o0)")
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(half, (a / 3).astype(np.float16))


@pytest.mark.parametrize("element", [np.float32, np.float16, np.int32, np.int8])
@pytest.mark.parametrize("mode", ["sum", "max", "min"])
@pytest.mark.parametrize("axes", [[1], [0], [0, 1]])
def test_reduce(rng: np.random.Generator, element: Any, mode: str, axes: list[int]) -> None:
    a = rng.integers(-20, 20, (6, 40)).astype(element)
    out = np.zeros([1 if axis in axes else size for axis, size in enumerate(a.shape)], element)
    run([a], [out], f"    hivm.hir.vreduce <{mode}> ins(%i0 : $i0) outs(%o0 : $o0) reduce_dims = {axes}")
    function = {"sum": np.sum, "max": np.max, "min": np.min}[mode]
    wide = a.astype(np.float32) if element is np.float16 else a
    np.testing.assert_array_equal(out, function(wide, axis=tuple(axes), keepdims=True).astype(element))


@pytest.mark.parametrize(("mode", "find"), [("max_with_index_left", "first"), ("max_with_index_right", "last"),
                                            ("min_with_index_left", "first")])
def test_reduce_with_index(mode: str, find: str) -> None:
    a = np.array([[3, 7, 7, 1, 1, 2], [5, 5, 5, 5, 5, 5]], np.float32)
    out, place = np.zeros((2, 1), np.float32), np.zeros((2, 1), np.int32)
    run([a], [out, place], f"    hivm.hir.vreduce <{mode}> ins(%i0 : $i0) outs(%o0, %o1 : $o0, $o1) reduce_dims = [1]")
    best = a.max(axis=1) if mode.startswith("max") else a.min(axis=1)
    np.testing.assert_array_equal(out[:, 0], best)
    for row, index, value in zip(a, place[:, 0], best, strict=True):
        where = np.flatnonzero(row == value)
        assert index == (where[0] if find == "first" else where[-1])


def test_fill_and_repeat(rng: np.random.Generator) -> None:
    column, row = numbers(rng, (8, 1), np.float16), numbers(rng, (1, 16), np.float16)
    wide, tall, filled = (np.zeros((8, 16), np.float16) for _ in range(3))
    run([column, row], [wide, tall, filled], """    hivm.hir.vbrc ins(%i0 : $i0) outs(%o0 : $o0) broadcast_dims = [1]
    hivm.hir.vbrc ins(%i1 : $i1) outs(%o1 : $o1) broadcast_dims = [0]
    hivm.hir.vbrc ins(%s : f16) outs(%o2 : $o2)""", "    %s = arith.constant 2.5 : f16")
    np.testing.assert_array_equal(wide, np.broadcast_to(column, (8, 16)))
    np.testing.assert_array_equal(tall, np.broadcast_to(row, (8, 16)))
    assert (filled == 2.5).all()


def test_shape_and_order(rng: np.random.Generator) -> None:
    a = numbers(rng, (4, 8), np.float32)
    turned, count, flipped, both = (np.zeros(s, np.float32) for s in ((8, 4), (4, 8), (4, 8), (4, 16)))
    run([a], [turned, count, flipped, both], """    hivm.hir.vtranspose ins(%i0 : $i0) outs(%o0 : $o0) permutation = [1, 0]
    hivm.hir.varange offset[%off] strides[%s0, %s1] outs(%o1 : $o1)
    hivm.hir.vflip ins(%i0 : $i0) outs(%o2 : $o2) flip_axis = 1
    hivm.hir.vconcat dim(1) ins(%i0, %i0 : $i0, $i0) outs(%o3 : $o3)""",
        "    %off = arith.constant 5 : index\n    %s0 = arith.constant 100 : index\n    %s1 = arith.constant 2 : index")
    np.testing.assert_array_equal(turned, a.T)
    np.testing.assert_array_equal(count, 5 + 100 * np.arange(4)[:, None] + 2 * np.arange(8))
    np.testing.assert_array_equal(flipped, a[:, ::-1])
    np.testing.assert_array_equal(both, np.concatenate([a, a], axis=1))


def test_cumulate_sort_gather(rng: np.random.Generator) -> None:
    a = rng.permutation(64).astype(np.float32).reshape(2, 32)
    index = rng.integers(0, 32, (2, 16)).astype(np.int32)
    total, back, ordered, place = np.zeros_like(a), np.zeros_like(a), np.zeros_like(a), np.zeros(a.shape, np.int32)
    picked = np.zeros((2, 16), np.float32)
    run([a, index], [total, back, ordered, place, picked],
        """    hivm.hir.vcumsum ins(%i0 : $i0) outs(%o0 : $o0) cum_dims = [1] reverse = false
    hivm.hir.vcumsum ins(%i0 : $i0) outs(%o1 : $o1) cum_dims = [1] reverse = true
    hivm.hir.vsort ins(%i0 : $i0) outs(%o2, %o3 : $o2, $o3) descending = true sort_axis = 1
    hivm.hir.vgather ins(%i0 : $i0) indices(%i1 : $i1) outs(%o4 : $o4)""")
    np.testing.assert_array_equal(total, a.cumsum(axis=1))
    np.testing.assert_array_equal(back, a[:, ::-1].cumsum(axis=1)[:, ::-1])
    np.testing.assert_array_equal(ordered, -np.sort(-a, axis=1))
    np.testing.assert_array_equal(np.take_along_axis(a, place.astype(np.int64), 1), ordered)
    np.testing.assert_array_equal(picked, np.take_along_axis(a, index.astype(np.int64), 1))


def test_interleave(rng: np.random.Generator) -> None:
    a, b = numbers(rng, (64,), np.float16), numbers(rng, (64,), np.float16)
    mixed, even, odd = np.zeros(128, np.float16), np.zeros(64, np.float16), np.zeros(64, np.float16)
    run([a, b], [mixed, even, odd],
        f"""    hivm.hir.vinterleave ins(%i0, %i1 : $i0, $i1) outs(%o0 : $o0) interleave_channel_nums = 2
{texts.BARRIER}
    hivm.hir.vdeinterleave ins(%o0 : $o0) outs(%o1, %o2 : $o1, $o2) channel_num = 2 index_mode = <ALL_CHANNELS>""")
    np.testing.assert_array_equal(mixed, np.stack([a, b], axis=1).reshape(-1))
    np.testing.assert_array_equal(even, a)
    np.testing.assert_array_equal(odd, b)


def test_in_place_and_bf16(rng: np.random.Generator) -> None:
    a = numbers(rng, (4, 16), ml_dtypes.bfloat16)
    out = np.zeros_like(a)
    run([a], [out], f"""    hivm.hir.vmax ins(%i0, %i0 : $i0, $i0) outs(%o0 : $o0)
{texts.BARRIER}
    hivm.hir.vmin ins(%o0, %i0 : $o0, $i0) outs(%o0 : $o0)""")
    np.testing.assert_array_equal(out.view(np.uint16), a.view(np.uint16))


def test_uninitialised_memory_is_poisoned() -> None:
    out = np.zeros((1, 8), np.float32)
    run([], [out], "", hazards=["S221"])
    assert np.isnan(out).all()
    counted = np.zeros((1, 8), np.int32)
    run([], [counted], "", hazards=["S221"])
    assert (counted == -1).all()
