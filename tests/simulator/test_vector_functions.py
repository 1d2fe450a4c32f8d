"""The values of vector functions: the simulator and the interpreter against NumPy, for every operation and element type."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
import pytest

from simulator.register_kernels import assert_results, compiled, executed, text_of
from tilelang_npu import TileError
from tilelang_npu.ops import dtype
from tilelang_npu.ops.register_operations import REGISTER_OPERATIONS
from tilelang_npu.target import chip

LANES = 64


def array(kind: str, size: int = LANES, seed: int = 0, low: int = -100, high: int = 100) -> np.ndarray:
    """Numbers that the element type represents exactly."""
    element = dtype(kind)
    rng = np.random.default_rng(zlib.crc32(f"{kind} {size} {seed}".encode()))
    if element.is_integer:
        low = max(low, 0) if not element.is_signed else low
        return rng.integers(low, high, size).astype(element.numpy)
    return (rng.integers(low, high, size) / 16).astype(element.numpy)


def wide(values: np.ndarray) -> np.ndarray:
    return values.astype(np.float64)


def once(values: Any, kind: str) -> np.ndarray:
    """Results in float64 rounded once; results that are integers wrap."""
    element = dtype(kind)
    if element.is_float:
        return np.asarray(values).astype(np.float32).astype(element.numpy) if element.bits < 32 else np.asarray(values).astype(
            np.float32)
    return np.array([int(value) % (1 << element.bits) for value in values], np.uint64).astype(
        f"u{element.nbytes}").view(element.numpy)


def shifted(values: np.ndarray, amounts: Any, *, left: bool) -> list[int]:
    bits = values.view(f"u{values.dtype.itemsize}")
    return [int(value) << int(amount) if left else int(value) >> int(amount)
            for value, amount in zip(bits, np.broadcast_to(amounts, values.shape), strict=True)]


def whole(values: np.ndarray) -> np.ndarray:
    return values.astype(object if values.dtype.kind in "iu" else np.float64)


EXPECTED: dict[str, Any] = {
    "vadd": lambda a, b, c, s: whole(a) + whole(b), "vsub": lambda a, b, c, s: whole(a) - whole(b),
    "vmul": lambda a, b, c, s: whole(a) * whole(b), "vdiv": lambda a, b, c, s: wide(a) / wide(b),
    "vmax": lambda a, b, c, s: np.maximum(a, b), "vmin": lambda a, b, c, s: np.minimum(a, b),
    "vand": lambda a, b, c, s: a & b, "vor": lambda a, b, c, s: a | b, "vxor": lambda a, b, c, s: a ^ b,
    "vshl": lambda a, b, c, s: shifted(a, b, left=True), "vshr": lambda a, b, c, s: shifted(a, b, left=False),
    "vabs": lambda a, b, c, s: abs(whole(a)), "vneg": lambda a, b, c, s: -whole(a),
    "vrelu": lambda a, b, c, s: np.maximum(a, a.dtype.type(0)), "vexp": lambda a, b, c, s: np.exp(wide(a)),
    "vln": lambda a, b, c, s: np.log(wide(a)), "vsqrt": lambda a, b, c, s: np.sqrt(wide(a)), "vnot": lambda a, b, c, s: ~a,
    "vadds": lambda a, b, c, s: whole(a) + s, "vmuls": lambda a, b, c, s: whole(a) * s,
    "vmaxs": lambda a, b, c, s: np.maximum(a, a.dtype.type(s)), "vmins": lambda a, b, c, s: np.minimum(a, a.dtype.type(s)),
    "vshls": lambda a, b, c, s: shifted(a, s, left=True), "vshrs": lambda a, b, c, s: shifted(a, s, left=False),
    "vexpdif": lambda a, b, c, s: np.exp(wide(a) - wide(b)), "vaxpy": lambda a, b, c, s: s * wide(a) + wide(b),
    "vlrelu": lambda a, b, c, s: np.maximum(wide(a), 0) + s * np.minimum(wide(a), 0),
    "vprelu": lambda a, b, c, s: np.maximum(wide(a), 0) + wide(b) * np.minimum(wide(a), 0),
    "vmula": lambda a, b, c, s: whole(a) + whole(b) * whole(c),
}
CASES = [(name, str(element)) for name, entry in REGISTER_OPERATIONS.items() for element in entry.elements]
CLOSE = ("vexp", "vln", "vsqrt", "vexpdif", "vdiv")
"""Operations whose results NumPy computes in the element type or in float32: their last bits may differ."""


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_each_operation_computes_every_element_type_below_a_mask(source: Any, name: str, kind: str) -> None:
    entry = REGISTER_OPERATIONS[name]
    positive = name in ("vln", "vsqrt")
    a = array(kind, seed=1, low=1 if positive else -100)
    b = array(kind, seed=2, low=1, high=8) if name in ("vshl", "vshr", "vdiv") else array(kind, seed=2)
    c, number = array(kind, seed=3), 3
    names = iter("xyz")
    operands = [str(number) if operand in entry.numbers else next(names) for operand in entry.operands]
    statements = f"""
        m = T.vmi.create_mask(41, size={LANES})
        x, y, z = T.vmi.vload(a[0], size={LANES}), T.vmi.vload(b[0], size={LANES}), T.vmi.vload(c[0], size={LANES})
        T.vmi.vstore(T.vmi.{name}({', '.join(operands)}, m), r[0])
    """
    computed = EXPECTED[name](a, b, c, number)
    expected = once(computed, kind) if name not in ("vmax", "vmin", "vmaxs", "vmins", "vrelu") else np.asarray(computed).astype(
        a.dtype)
    expected[41:] = 0
    if name in CLOSE:
        made = {"R": np.ones(LANES, a.dtype)}
        for result in executed(source, statements, {"A": a, "B": b, "C": c}, made):
            np.testing.assert_allclose(wide(result["R"]), wide(expected), rtol=2e-3 if kind == "float16" else 1e-6, atol=1e-7)
        return
    assert_results(source, statements, {"A": a, "B": b, "C": c}, {"R": expected})


KINDS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "float16", "bfloat16", "float32", "float8_e4m3fn",
         "float8_e5m2")


def bits_of(kind: str, size: int, seed: int = 0) -> np.ndarray:
    """Elements with arbitrary bits, except NaN."""
    element = dtype(kind)
    rng = np.random.default_rng(zlib.crc32(f"{kind} {size} {seed}".encode()))
    made = rng.integers(0, 256, size * element.nbytes).astype(np.uint8).view(element.numpy)
    with np.errstate(invalid="ignore"):
        made[np.isnan(wide(made))] = 0
    return made


@pytest.mark.parametrize("kind", KINDS)
def test_loads_and_stores_move_every_element_type(source: Any, kind: str) -> None:
    """A tail that does not fill a register is neither computed nor written."""
    a = bits_of(kind, 192)
    expected = np.concatenate([a[:150], np.ones(42, a.dtype)])
    assert_results(source, """
        for i in T.serial(3):
            m = T.vmi.create_mask(150 - i * 64, size=64)
            T.vmi.vstore(T.vmi.vload(a[i * 64], size=64), r[i * 64], m)
    """, {"A": a}, {"R": expected})


@pytest.mark.parametrize("kind", ["uint8", "float16", "float32"])
def test_the_modes_of_loads(source: Any, kind: str) -> None:
    a = bits_of(kind, 512)
    blocks = a.reshape(-1, 32 // a.dtype.itemsize)
    lanes = 256 // a.dtype.itemsize
    count = lanes * a.dtype.itemsize // 32
    assert_results(source, f"""
        T.vmi.vstore(T.vmi.vload(a[5], size=64, dist_mode="brc"), b[0])
        T.vmi.vstore(T.vmi.vload(a[3], size=64, dist_mode="brc", group=8, stride=16), g[0])
        even, odd = T.vmi.vload(a[2], size=64, dist_mode="dintlv")
        T.vmi.vstore(even, e[0])
        T.vmi.vstore(odd, o[0])
        T.vmi.vstore(T.vmi.vload(a[7], size=64, group=4, stride=20), s[0])
        T.vmi.vstore(T.vmi.vload(a[0], size={lanes}, block_stride={2 if kind != "uint8" else 1}, repeat_stride=0), k[0])
    """, {"A": a}, {
        "B": np.full(64, a[5]), "G": np.repeat(a[3:3 + 8 * 16:16], 8), "E": a[2:130:2], "O": a[3:131:2],
        "S": np.concatenate([a[7 + 20 * row:23 + 20 * row] for row in range(4)]),
        "K": blocks[:count * 2:2].reshape(-1) if kind != "uint8" else a[:lanes]})


@pytest.mark.parametrize("kind", ["int8", "bfloat16", "int32"])
def test_the_modes_of_stores(source: Any, kind: str) -> None:
    a, b = bits_of(kind, 64), bits_of(kind, 64, seed=1)
    one = np.ones(256, a.dtype)
    both, groups, masked = one.copy(), one.copy(), one.copy()
    both[3:131] = np.stack([a, b], axis=1).reshape(-1)
    for row in range(4):
        groups[1 + 40 * row:17 + 40 * row] = a[16 * row:16 * row + 16]
    masked[:22] = np.stack([a, b], axis=1).reshape(-1)[:22]
    size = 32 // a.dtype.itemsize
    apart = one.copy()
    for block in range(64 // size):
        lanes = slice(size * block, min(size * block + size, 50))
        apart[2 * size * block:2 * size * block + lanes.stop - lanes.start] = a[lanes]
    assert_results(source, """
        x, y = T.vmi.vload(a[0], size=64), T.vmi.vload(b[0], size=64)
        T.vmi.vstore((x, y), d[3], dist_mode="dintlv")
        T.vmi.vstore((x, y), m[0], T.vmi.create_mask(11, size=64), dist_mode="dintlv")
        T.vmi.vstore(x, g[1], group=4, stride=40)
        T.vmi.vstore(x, k[0], mask=T.vmi.create_mask(50, size=64), block_stride=2, repeat_stride=0)
    """, {"A": a, "B": b}, {"D": both, "M": masked, "G": groups, "K": apart})


def test_the_axes_of_a_buffer_follow_one_another(source: Any) -> None:
    a = bits_of("float32", 5 * 40).reshape(5, 40)
    expected = np.ones((5, 40), np.float32)
    expected.reshape(-1)[2 * 40 + 7:2 * 40 + 71] = a.reshape(-1)[40 + 3:40 + 67]
    assert_results(source, """
        for i in T.serial(1, 2):
            T.vmi.vstore(T.vmi.vload(a[i, 3], size=64), r[i + 1, 7])
    """, {"A": a}, {"R": expected})


@pytest.mark.parametrize(("kind", "index"), [("float32", "int32"), ("float16", "uint16"), ("int16", "int16"),
                                             ("uint32", "uint32")])
def test_gather_and_scatter_address_by_element(source: Any, kind: str, index: str) -> None:
    a = bits_of(kind, 200)
    places = np.random.default_rng(1).permutation(180)[:64].astype(index)
    gathered = np.where(np.arange(64) < 50, a[10 + places.astype(int)], np.zeros((), a.dtype)).astype(a.dtype)
    scattered = np.ones(200, a.dtype)
    scattered[10 + places[:50].astype(int)] = a[:50]
    assert_results(source, """
        m = T.vmi.create_mask(50, size=64)
        where = T.vmi.vload(i[0], size=64)
        T.vmi.vstore(T.vmi.vgather(a[10], where, m), g[0])
        T.vmi.vscatter(T.vmi.vload(a[0], size=64), s[10], where, m)
    """, {"A": a, "I": places}, {"G": gathered, "S": scattered})


def test_lanes_that_store_to_one_element_keep_the_last(source: Any) -> None:
    a = bits_of("float32", 64)
    expected = np.ones(64, np.float32)
    expected[[4, 5]] = a[[62, 63]]
    assert_results(source, """
        m = T.vmi.create_mask(64, size=64)
        T.vmi.vscatter(T.vmi.vload(a[0], size=64), r[0], T.vmi.vload(i[0], size=64), m)
    """, {"A": a, "I": (4 + np.arange(64) % 2).astype(np.int32)}, {"R": expected})


def test_masks_of_groups_and_of_numbers_of_the_kernel(source: Any) -> None:
    one = np.ones(64, np.int32)
    groups, whole_register, none = 7 * one, 7 * one, one
    groups = np.where(np.arange(64) % 16 < 5, 7, 1).astype(np.int32)
    assert_results(source, """
        seven = T.vmi.vbrc(T.int32(7), size=64)
        T.vmi.vstore(seven, g[0], T.vmi.create_mask(n, size=64, group=4))
        T.vmi.vstore(seven, w[0], T.vmi.create_mask(n * 100, size=64))
        T.vmi.vstore(seven, z[0], T.vmi.create_mask(n - 5, size=64))
        T.vmi.vstore(seven, y[0], T.vmi.create_mask(n - 50, size=64))
    """, {}, {"G": groups, "W": whole_register, "Z": none, "Y": none}, 5, parameters="n: T.int32")


@pytest.mark.parametrize("kind", ["int32", "uint8", "float32", "float16"])
def test_fills_and_counts(source: Any, kind: str) -> None:
    steps = np.arange(64)
    element = dtype(kind).numpy
    assert_results(source, f"""
        T.vmi.vstore(T.vmi.vbrc(T.{kind}(9), size=64), b[0])
        T.vmi.vstore(T.vmi.vci(T.{kind}(100), size=64), u[0])
        T.vmi.vstore(T.vmi.vci(T.{kind}(100), size=64, order="DESC"), d[0])
        T.vmi.vstore(T.vmi.vbrc(T.vmi.vload(a[0], size=4), size=64, group=4), g[0])
    """, {"A": np.array([4, 5, 6, 7], element)}, {
        "B": np.full(64, 9, element), "U": (100 + steps).astype(element), "D": (100 - steps).astype(element),
        "G": np.repeat(np.array([4, 5, 6, 7], element), 16)})


@pytest.mark.parametrize("kind", ["uint8", "int16", "float32"])
def test_registers_are_interleaved_and_separated(source: Any, kind: str) -> None:
    a, b = bits_of(kind, 64), bits_of(kind, 64, seed=1)
    both = np.stack([a, b], axis=1).reshape(-1)
    joined = np.concatenate([a, b])

    def first(values: np.ndarray) -> np.ndarray:
        return np.where(np.arange(64) < 40, values, np.zeros((), values.dtype)).astype(values.dtype)

    assert_results(source, """
        x, y = T.vmi.vload(a[0], size=64), T.vmi.vload(b[0], size=64)
        m = T.vmi.create_mask(40, size=64)
        low, high = T.vmi.vintlv(x, y, m)
        even, odd = T.vmi.vdintlv(x, y, m)
        T.vmi.vstore(low, l[0])
        T.vmi.vstore(high, h[0])
        T.vmi.vstore(even, e[0])
        T.vmi.vstore(odd, o[0])
    """, {"A": a, "B": b}, {"L": first(both[:64]), "H": first(both[64:]), "E": first(joined[::2]), "O": first(joined[1::2])})


ORDERS = {"eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal}


@pytest.mark.parametrize("kind", ["int8", "uint16", "int32", "uint32", "float16", "bfloat16", "float32"])
@pytest.mark.parametrize("order", ORDERS)
def test_comparisons_choose_lanes(source: Any, kind: str, order: str) -> None:
    """Unsigned elements with their highest bit set are large; NaN is unequal to everything."""
    a, b = bits_of(kind, 64), bits_of(kind, 64, seed=1)
    b[::3] = a[::3]
    if dtype(kind).is_float:
        a[5] = b[7] = a[9] = b[9] = np.nan
    within = np.arange(64) < 60
    with np.errstate(invalid="ignore"):
        less = ORDERS[order](a, b) & within
        number = ORDERS[order](a, np.asarray(3, a.dtype)) & within
    assert_results(source, f"""
        x, y, m = T.vmi.vload(a[0], size=64), T.vmi.vload(b[0], size=64), T.vmi.create_mask(60, size=64)
        T.vmi.vstore(T.vmi.vsel(T.vmi.vcmp(x, y, m, "{order}"), x, y), r[0])
        T.vmi.vstore(T.vmi.vsel(T.vmi.vcmps(x, 3, m, "{order}"), y, x), s[0])
    """, {"A": a, "B": b}, {"R": np.where(less, a, b).astype(a.dtype), "S": np.where(number, b, a).astype(a.dtype)})


def test_an_ordered_comparison_is_false_for_nan(source: Any) -> None:
    a, b = array("float32"), array("float32", seed=1)
    a[3] = np.nan
    assert_results(source, """
        x, y, m = T.vmi.vload(a[0], size=64), T.vmi.vload(b[0], size=64), T.vmi.create_mask(64, size=64)
        T.vmi.vstore(T.vmi.vsel(T.vmi.vcmp(x, y, m, "olt"), x, y), r[0])
    """, {"A": a, "B": b}, {"R": np.where(a < b, a, b)})


SUMMED = ("int16", "uint16", "int32", "uint32", "float16", "float32")
REDUCED = [(name, kind, group) for name in ("vcadd", "vcmax", "vcmin") for kind in SUMMED for group in (1, 4)]


@pytest.mark.parametrize(("name", "kind", "group"), REDUCED)
def test_reductions_of_the_selected_lanes(source: Any, name: str, kind: str, group: int) -> None:
    a = array(kind, seed=4) if dtype(kind).is_float else bits_of(kind, 64)
    chosen = np.arange(64) < 57
    made = []
    for values, kept in zip(np.split(a, group), np.split(chosen, group), strict=True):
        left = whole(values[kept])
        made.append({"vcadd": sum, "vcmax": max, "vcmin": min}[name](left))
    expected = np.ones(8, a.dtype)
    expected[:group] = once(made, kind)
    more = ", reassoc=True" if name == "vcadd" else ""
    assert_results(source, f"""
        m = T.vmi.create_mask(57, size=64)
        T.vmi.vstore(T.vmi.{name}(T.vmi.vload(a[0], size=64), m, group={group}{more}), r[0])
    """, {"A": a}, {"R": expected})


def test_a_reduction_of_no_lane_is_its_neutral_element(source: Any) -> None:
    expected = {"S": np.zeros(1, np.float32), "X": np.full(1, -np.inf, np.float32), "N": np.full(1, 2**31 - 1, np.int32)}
    assert_results(source, """
        m = T.vmi.create_mask(0, size=64)
        x = T.vmi.vload(a[0], size=64)
        T.vmi.vstore(T.vmi.vcadd(x, m, reassoc=False), s[0])
        T.vmi.vstore(T.vmi.vcmax(x, m), x_[0])
        T.vmi.vstore(T.vmi.vcmin(T.vmi.vload(i[0], size=64), m), n[0])
    """.replace("x_[0]", "x[0]").replace("x = T", "v = T").replace("(x, m", "(v, m"),
                   {"A": array("float32"), "I": array("int32")}, expected)


ROUND = {"R": np.rint, "Z": np.trunc, "A": lambda values: np.trunc(values + np.copysign(0.5, values))}
WHOLE = ("int8", "uint8", "int16", "uint16", "int32", "uint32")


@pytest.mark.parametrize("rounding", ROUND)
@pytest.mark.parametrize("target", WHOLE)
@pytest.mark.parametrize("kind", ["float16", "bfloat16", "float32"])
def test_floats_become_integers(source: Any, kind: str, target: str, rounding: str) -> None:
    a = array(kind, seed=6, low=-3000, high=3000)
    a[:6] = [0.5, -0.5, 1.5, -1.5, 2.5, -2.5]
    numbers = np.iinfo(target)
    expected = np.clip(ROUND[rounding](wide(a)), numbers.min, numbers.max).astype(target)
    assert_results(source, f"""
        T.vmi.vstore(T.vmi.vcvt(T.vmi.vload(a[0], size=64), "{target}", rounding="{rounding}"), r[0])
    """, {"A": a}, {"R": expected})


@pytest.mark.parametrize("target", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("kind", WHOLE)
def test_integers_become_floats(source: Any, kind: str, target: str) -> None:
    a = array(kind, seed=7, low=-100, high=100)
    expected = a.astype(np.float64).astype(np.float32).astype(dtype(target).numpy)
    assert_results(source, f"""
        T.vmi.vstore(T.vmi.vcvt(T.vmi.vload(a[0], size=64), "{target}"), r[0])
    """, {"A": a}, {"R": expected})


@pytest.mark.parametrize("saturate", ["SAT", "NOSAT"])
@pytest.mark.parametrize("target", WHOLE)
@pytest.mark.parametrize("kind", WHOLE)
def test_integers_become_wider_narrower_or_are_clamped(source: Any, kind: str, target: str, saturate: str) -> None:
    a = bits_of(kind, 64)
    numbers = np.iinfo(target)
    wanted = np.clip(a.astype(object), numbers.min, numbers.max) if saturate == "SAT" else a.astype(object)
    assert_results(source, f"""
        T.vmi.vstore(T.vmi.vcvt(T.vmi.vload(a[0], size=64), "{target}", saturate="{saturate}"), r[0])
    """, {"A": a}, {"R": once(wanted, target)})


@pytest.mark.parametrize(("kind", "target"), [
    ("float32", "float16"), ("float32", "bfloat16"), ("float16", "float32"), ("bfloat16", "float32"), ("bfloat16", "float16"),
    ("float16", "bfloat16"), ("float32", "float8_e4m3fn"), ("float32", "float8_e5m2"), ("float8_e4m3fn", "float32"),
    ("float8_e5m2", "float32")])
def test_floats_become_floats(source: Any, kind: str, target: str) -> None:
    a = array(kind, seed=8) if dtype(kind).bits > 8 else bits_of(kind, 64)
    expected = a.astype(np.float32).astype(dtype(target).numpy)
    assert_results(source, f"""
        T.vmi.vstore(T.vmi.vcvt(T.vmi.vload(a[0], size=64), "{target}"), r[0])
    """, {"A": a}, {"R": expected})


@pytest.mark.parametrize(("target", "most"), [("float8_e4m3fn", 448.0), ("float8_e5m2", 57344.0), ("float16", 65504.0)])
def test_a_saturating_conversion_has_no_infinity(source: Any, target: str, most: float) -> None:
    a = np.full(64, 1e9, np.float32)
    a[::2] = -1e9
    assert_results(source, f"""
        T.vmi.vstore(T.vmi.vcvt(T.vmi.vload(a[0], size=64), "{target}", saturate="SAT"), r[0])
    """, {"A": a}, {"R": np.clip(a, -most, most).astype(dtype(target).numpy)})


def test_bits_are_reinterpreted_split_and_joined(source: Any) -> None:
    a, b = bits_of("float32", 64), bits_of("int16", 64)
    halves = a.view(np.uint16).reshape(-1, 2)
    assert_results(source, """
        x = T.vmi.vload(a[0], size=64)
        T.vmi.vstore(T.vmi.vinterpret_cast(x, "int32"), i[0])
        T.vmi.vstore(T.vmi.vinterpret_cast(x, "uint8"), c[0])
        low, high = T.vmi.vunzip(x)
        T.vmi.vstore(low, l[0])
        T.vmi.vstore(high, h[0])
        T.vmi.vstore(T.vmi.vzip(low, high, "float32"), z[0])
        small, large = T.vmi.vunzip(T.vmi.vload(b[0], size=64), "int8")
        T.vmi.vstore(T.vmi.vzip(small, large, "int16"), s[0])
    """, {"A": a, "B": b}, {"I": a.view(np.int32), "C": a.view(np.uint8), "L": np.ascontiguousarray(halves[:, 0]),
                            "H": np.ascontiguousarray(halves[:, 1]), "Z": a, "S": b})


@pytest.mark.parametrize("kind", ["int32", "uint32"])
def test_products_of_64_bits(source: Any, kind: str) -> None:
    a, b = bits_of(kind, 64), bits_of(kind, 64, seed=1)
    products = a.astype(object) * b.astype(object)
    assert_results(source, """
        m = T.vmi.create_mask(64, size=64)
        low, high = T.vmi.vmull(T.vmi.vload(a[0], size=64), T.vmi.vload(b[0], size=64), m)
        T.vmi.vstore(low, l[0])
        T.vmi.vstore(high, h[0])
    """, {"A": a, "B": b}, {"L": once(products, kind), "H": once([value >> 32 for value in products], kind)})


def test_registers_are_assigned_in_loops_and_below_conditions(source: Any) -> None:
    a = array("float32", 4 * 64)
    rows = a.reshape(4, 64)
    assert_results(source, """
        m = T.vmi.create_mask(64, size=64)
        acc = T.vmi.alloc_var("float32", size=64)
        acc = T.vmi.vbrc(T.float32(0), size=64)
        kept = T.vmi.alloc_local((4,), T.vmi.vreg(64, "float32"))
        for i in T.serial(4):
            kept[i] = T.vmi.vload(a[i * 64], size=64)
            if i != n:
                acc = T.vmi.vadd(acc, kept[i], m)
        T.vmi.vstore(acc, s[0])
        for i in T.serial(4):
            T.vmi.vstore(kept[3 - i], r[i * 64])
    """, {"A": a}, {"S": rows[0] + rows[1] + rows[3], "R": rows[::-1].reshape(-1).copy()}, 2, parameters="n: T.int32")


def test_the_function_takes_numbers_of_the_kernel(source: Any) -> None:
    a = array("float16")
    assert_results(source, """
        m = T.vmi.create_mask(n, size=64)
        T.vmi.vstore(T.vmi.vmuls(T.vmi.vload(a[k * 8], size=64), n + k, m), r[k])
    """, {"A": np.tile(a, 2)}, {"R": np.concatenate([np.zeros(0, np.float16), np.ones(2, np.float16), np.where(
        np.arange(64) < 5, np.tile(a, 2)[16:80] * 7, 0), np.ones(62, np.float16)]).astype(np.float16)}, 5,
        parameters="n: T.int32", around="for k in T.serial(2, 3):")


KERNEL = """
import tilelang_npu.language as T


@T.prim_func
def main(A: T.Tensor((24, 150), "float32"), R: T.Tensor((24, 150), "float32")):
    with T.Kernel(24) as row:
        a = T.alloc_shared((192,), "float32")
        r = T.alloc_shared((192,), "float32")
        T.copy(A[row, 0], a[0:150])
        with T.SimdVF({latency}):
            for i in T.serial({registers}):
                m = T.vmi.create_mask(150 - i * 64, size=64)
                T.vmi.vstore(T.vmi.vmuls(T.vmi.vload(a[i * 64], size=64), row + 1, m), r[i * 64], m)
        T.copy(r[0:150], R[row, 0])
"""


def test_the_blocks_of_a_launch_compute_their_own_rows(source: Any) -> None:
    kernel = compiled(source, KERNEL.format(latency="", registers=3))
    a, results = np.random.default_rng(0).standard_normal((24, 150)).astype(np.float32), np.zeros((24, 150), np.float32)
    kernel(a, results)
    np.testing.assert_array_equal(results, a * (np.arange(24, dtype=np.float32) + 1)[:, None])


def test_a_lane_outside_of_the_buffer_is_an_error_at_its_line(source: Any) -> None:
    text = text_of("""
        for i in T.serial(n):
            T.vmi.vstore(T.vmi.vload(a[i * 64], size=64), r[0])
    """, {"A": array("float32", 128)}, {"R": array("float32")}, parameters="n: T.int32")
    line = 1 + next(number for number, have in enumerate(text.splitlines()) if "vload" in have)
    for run in (lambda kernel: kernel, lambda kernel: kernel.interpret):
        run(compiled(source, text))(array("float32", 128), array("float32"), 2)
        with pytest.raises(TileError) as caught:
            run(compiled(source, text))(array("float32", 128), array("float32"), 3)
        assert caught.value.code == "T502"
        assert f".py:{line}" in str(caught.value)
        assert "lanes 128 to 191 of a register are not all inside a" in str(caught.value)


def test_a_gather_outside_of_the_buffer_is_an_error(source: Any) -> None:
    statements = """
        T.vmi.vstore(T.vmi.vgather(a[0], T.vmi.vload(i[0], size=64), T.vmi.create_mask(n, size=64)), r[0])
    """
    places = np.arange(64, dtype=np.int32)
    places[60] = 64
    given, made = {"A": array("float32"), "I": places}, {"R": array("float32")}
    executed(source, statements, given, made, 60, parameters="n: T.int32")
    with pytest.raises(TileError, match="a lane accesses element 64 of a, which has 64 elements"):
        executed(source, statements, given, made, 64, parameters="n: T.int32")


def busy(source: Any, registers: int, latency: str = "") -> float:
    """The cycles for which pipe V executes the vector function of one block."""
    launch = compiled(source, KERNEL.format(latency=latency, registers=registers)).estimate(
        np.zeros((24, 150), np.float32), np.zeros((24, 150), np.float32))
    return launch.busy_cycles["AIV"]["V"] / 24


def test_the_cycles_of_a_function_are_those_of_its_instructions(source: Any) -> None:
    """Each iteration loads, multiplies by a number and stores one register; the fixed part is added."""
    rates = chip("950").vector
    each = rates["vld"].slope32 + rates["mul"].slope32 + rates["vst"].slope32
    assert busy(source, 3) == rates["vector_function"].fixed + 3 * each
    assert busy(source, 1) == rates["vector_function"].fixed + each


def test_the_latency_that_the_author_measured_replaces_them(source: Any) -> None:
    assert busy(source, 3, "latency=777") == 777


def test_the_cycles_of_a_loop_count_its_iterations_at_run_time(source: Any) -> None:
    text = text_of("""
        for i in T.serial(n):
            T.vmi.vstore(T.vmi.vload(a[i * 64], size=64), r[i * 64])
    """, {"A": np.zeros(256, np.float32)}, {"R": np.zeros(256, np.float32)}, parameters="n: T.int32")
    kernel, rates = compiled(source, text), chip("950").vector
    for count in (0, 1, 4):
        launch = kernel.estimate(np.zeros(256, np.float32), np.zeros(256, np.float32), count)
        assert launch.busy_cycles["AIV"]["V"] == rates["vector_function"].fixed + count * (
            rates["vld"].slope32 + rates["vst"].slope32)


def test_waits_stand_around_the_call(source: Any) -> None:
    """Without the waits the sanitizer reports the accesses of the function; with them there is no finding."""
    kernel = compiled(source, KERNEL.format(latency="", registers=3))
    lines = [line.strip() for line in kernel.mlir().splitlines()]
    call = next(number for number, line in enumerate(lines) if line.startswith("call @main_vf_0"))
    assert "wait_flag[<PIPE_MTE2>, <PIPE_V>" in lines[call - 1]
    assert "set_flag[<PIPE_V>, <PIPE_MTE3>" in lines[call + 1]
