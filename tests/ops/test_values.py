"""Every operation against exact arithmetic, in each dialect, for every element type, over shapes that do not divide."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from ops import reference, surface
from ops.conftest import Batch
from tilelang_npu import ops
from tilelang_npu.ops import DType, dtype

SHAPES = [(1,), (65,), (2, 3, 9), (3, 63)]
POSITIVE = ("ln", "sqrt", "rsqrt", "log2", "log10", "log1p")
SHIFTS = ("bitwise_lshift", "bitwise_rshift")
DIVISIONS = ("div", "mod", "modui")


def numbers(rng: np.random.Generator, name: str, position: int, element: DType, shape: tuple[int, ...]) -> np.ndarray:
    """Returns ordinary inputs of an operation: all integers of the type, floats of both signs if the operation accepts them."""
    kind = element.numpy
    if element.is_bool or (name == "select" and position == 0):
        made = rng.integers(0, 2, shape).astype(np.bool_)
        return np.ones(shape, np.bool_) if name in DIVISIONS and position == 1 else made
    if element.is_integer:
        low, high = np.iinfo(kind).min, np.iinfo(kind).max
        if name in SHIFTS and position == 1:
            return rng.integers(0, element.bits, shape).astype(kind)
        if name == "pow":
            return rng.integers(0 if position else -6, 7, shape).astype(kind)
        made = rng.integers(low, high, shape, dtype=np.int64 if element.is_signed else np.uint64, endpoint=True).astype(kind)
        return np.where(made == 0, kind.type(3), made) if name in DIVISIONS and position == 1 else made
    values = rng.standard_normal(shape) * 4
    if name in POSITIVE or name == "pow":
        values = np.abs(values) + 0.05
    return np.rint(values).astype(kind) if name == "ldexp" and position else values.astype(kind)


def is_thorough(entry: ops.Operation, name: str) -> bool:
    """Whether a dialect's name of an operation is tested for every element type and form."""
    return surface.dialect_of(name) == "npuir" or len(surface.main_names(entry)) == 1


def legal_cases(kinds: type | tuple[type, ...]) -> list[Any]:
    """Yields entry, name and element type: all types in one dialect; two in the other, which differs only in the operands'
    order."""
    cases = []
    for entry, name in surface.covered():
        if isinstance(entry, kinds) and entry.name != "cast":
            legal = [element for element in surface.ALL_TYPES if surface.is_legal(entry, element, surface.dialect_of(name))]
            if not is_thorough(entry, name):
                legal = [element for element in legal if str(element) in ("float32", "int32")] or legal[:1]
            cases += [pytest.param(entry, name, element, id=f"{name}-{element}") for element in legal]
    return cases


def expected(entry: ops.Elementwise, inputs: Sequence[np.ndarray], held: np.ndarray) -> np.ndarray:
    values = np.broadcast_arrays(*inputs)
    if getattr(entry, "accumulates", False):
        values = [*values, np.broadcast_to(held, values[0].shape)]
    return np.broadcast_to(reference.ELEMENTWISE[entry.name](*values), held.shape)


def add_call(batch: Batch, entry: ops.Elementwise, name: str, held: np.ndarray, inputs: Sequence[np.ndarray | str],
             texts: Sequence[str | None]) -> None:
    """Adds one call; ``texts`` replaces a buffer by a scalar, or with ``d`` by the destination."""
    arrays = [value for value in inputs if isinstance(value, np.ndarray)]
    target = batch.hold(arrays[texts.index("d")] if "d" in texts else held)
    words = [target if text == "d" else text or batch.hold(array) for text, array in zip(texts, arrays, strict=True)]
    start = batch.arrays[target]
    wanted = expected(entry, arrays, start)
    batch.call(surface.elementwise_call(name, entry, target, words), target, wanted, reference.ULPS.get(entry.name, 0))


def test_every_elementwise_operation_has_a_reference() -> None:
    missing = [op.name for op in ops.operations().values() if isinstance(op, ops.Elementwise) and surface.names(op)
               and op.name not in (*reference.ELEMENTWISE, "cast")]
    assert not missing, f"add to tests/ops/reference.py what {', '.join(missing)} computes"
    assert {op.name for op in ops.operations().values() if isinstance(op, ops.Reduce)} <= set(reference.REDUCTIONS)


@pytest.mark.parametrize(("entry", "name", "element"), legal_cases(ops.Elementwise))
def test_elementwise(batch: Callable[[str], Batch], rng: np.random.Generator, entry: ops.Elementwise, name: str,
                     element: DType) -> None:
    """Shapes, in place, scalars; in one of the dialects also broadcast axes, and regions of larger buffers."""
    calls, thorough = batch(surface.dialect_of(name)), is_thorough(entry, name)
    plain: list[str | None] = [None] * entry.inputs
    kept: dict[tuple[int, tuple[int, ...]], np.ndarray] = {}

    def inputs(shape: tuple[int, ...]) -> list[np.ndarray]:
        return [kept.setdefault((position, shape), numbers(rng, entry.name, position, element, shape))
                for position in range(entry.inputs)]

    def held(shape: tuple[int, ...]) -> np.ndarray:
        return numbers(rng, "", 1, surface.result_type(entry, element), shape)

    for shape in SHAPES if thorough else SHAPES[-1:]:
        add_call(calls, entry, name, held(shape), inputs(shape), plain)
    first = 1 if entry.condition else 0
    if entry.in_place and (entry.result == "same" or entry.condition) and not getattr(entry, "accumulates", False):
        add_call(calls, entry, name, held((3, 63)), inputs((3, 63)), [*plain[:first], "d", *plain[first + 1:]])
    for position in sorted(entry.scalar):
        given = inputs((3, 63))
        number = given[position].reshape(-1)[0]
        given[position] = np.full((3, 63), number)
        texts = list(plain)
        texts[position] = repr(number.item())
        add_call(calls, entry, name, held((3, 63)), given, texts)
    for position in range(entry.inputs) if entry.broadcast and thorough else ():
        for unit in ((3, 1), (1, 63)):
            given = inputs((3, 63))
            given[position] = numbers(rng, entry.name, position, element, unit)
            add_call(calls, entry, name, held((3, 63)), given, plain)
    for part in ((slice(1, 4), slice(None)), (slice(1, 4), slice(8, 25))) if thorough else ():
        given, whole = inputs((5, 40)), held((5, 40))
        wanted = whole.copy()
        wanted[part] = expected(entry, [array[part] for array in given], whole[part])
        target, text = calls.hold(whole), "[1:4, :]" if part[1] == slice(None) else "[1:4, 8:25]"
        words = [calls.hold(array) + text for array in given]
        statement = surface.elementwise_call(name, entry, target + text, words)
        calls.call(statement, target, wanted, reference.ULPS.get(entry.name, 0))
    calls.run()


@pytest.mark.parametrize(("entry", "element", "dialect"), [
    pytest.param(entry, element, dialect, id=f"{entry.name}-{element}-{dialect}")
    for entry in ops.operations().values() if isinstance(entry, ops.Reduce) for element in surface.ALL_TYPES
    for dialect in ("npuir", "ascendc")
    if surface.is_legal(entry, element, dialect) and (dialect == "npuir" or str(element) in ("float32", "int32"))])
def test_reductions(batch: Callable[[str], Batch], rng: np.random.Generator, entry: ops.Reduce, element: DType,
                    dialect: str) -> None:
    """Each axis of each shape; with accumulation into the destination; with real sizes; sums of floats are exact."""
    calls = batch(dialect)

    def values(shape: tuple[int, ...]) -> np.ndarray:
        if entry.name == "reduce_prod" and element.is_float:
            return rng.choice([-1, 1], shape).astype(element.numpy)
        if entry.name in ("reduce_any", "reduce_all") and not element.is_bool:
            return (rng.integers(-1 if element.is_float or element.is_signed else 0, 2, shape) * 3).astype(element.numpy)
        if element.is_float:
            return rng.integers(-8, 9, shape).astype(element.numpy)
        return numbers(rng, "", 0, element, shape)

    def combined(held: np.ndarray, result: np.ndarray) -> np.ndarray:
        return reference.ELEMENTWISE[reference.COMBINED[entry.name]](held, result)

    stack = [(2, 3, 9)] if dialect == "npuir" else []  # three axes are matrices in the ascendc dialect
    for shape in [(1,), (65,), (7, 1), (5, 129), *stack]:
        for axis in range(len(shape)):
            given = values(shape)
            wanted = reference.REDUCTIONS[entry.name](given, axis)
            source, target = calls.hold(given), calls.hold(values(wanted.shape))
            calls.call(f"T.{entry.name}({source}, {target}, dim={axis})", target, wanted)
    given, held = values((5, 37)), values((5, 1))
    if entry.name not in ("reduce_sum", "reduce_prod") or element.is_signed:
        source, target = calls.hold(given), calls.hold(held)
        calls.call(f"T.{entry.name}({source}, {target}, dim=-1, clear=False)", target,
                   combined(held, reference.REDUCTIONS[entry.name](given, 1)))
    source, target = calls.hold(given), calls.hold(held)
    calls.call(f"T.{entry.name}({source}, {target}, dim=1, real_shape=[5, 11])", target,
               reference.REDUCTIONS[entry.name](given[:, :11], 1))
    source, target = calls.hold(given), calls.hold(held[:, 0])
    calls.call(f"T.{entry.name}({source}, {target}, dim=1)", target, reference.REDUCTIONS[entry.name](given, 1)[:, 0])
    calls.run()


@pytest.mark.parametrize("kind", ["float16", "float32", "int32"])
@pytest.mark.parametrize("mode", ["abssum", "absmax"])
def test_reductions_of_absolute_values(batch: Callable[[str], Batch], rng: np.random.Generator, mode: str, kind: str) -> None:
    calls = batch("npuir")
    given = rng.integers(-8, 9, (5, 37)).astype(kind)
    source, target = calls.hold(given), calls.hold(np.zeros((5, 1), kind))
    total = np.abs(given.astype(np.float64))
    wanted = (total.sum(1, keepdims=True) if mode == "abssum" else total.max(1, keepdims=True)).astype(kind)
    calls.call(f"T.reduce({source}, {target}, 1, '{mode}')", target, wanted)
    calls.call(f"T.reduce_{mode}({source}, {target})", source, given)
    calls.run()


def test_sums_of_floats_are_close(batch: Callable[[str], Batch], rng: np.random.Generator) -> None:
    """Sums are carried in float32: half-precision ones are rounded once, the others are off by their order of addition."""
    for kind in (np.float16, np.float32):
        calls = batch("npuir")
        given = rng.random((4, 1000)).astype(kind)
        source, target = calls.hold(given), calls.hold(np.zeros((4, 1), kind))
        calls.call(f"T.reduce_sum({source}, {target})", target, reference.sums(given, 1), ulps=1 if kind is np.float16 else 4)
        calls.run()


def test_sum_of_halves_into_single_precision(batch: Callable[[str], Batch], rng: np.random.Generator) -> None:
    calls = batch("npuir")
    given = (rng.random((3, 65)) * 100).astype(np.float16)
    source, target = calls.hold(given), calls.hold(np.zeros((3, 1), np.float32))
    calls.call(f"T.reduce_sum({source}, {target})", target, reference.sums(given.astype(np.float32), 1), ulps=2)
    calls.run()


@pytest.mark.parametrize("element", list(ops.operation("compare").dtypes))
def test_comparisons(batch: Callable[[str], Batch], rng: np.random.Generator, element: DType) -> None:
    """Each mode, with a buffer and a scalar, into a mask of bool and of int8."""
    calls = batch("npuir")
    a, b = (rng.integers(0, 3, (3, 65)).astype(element.numpy) for _ in range(2))
    left, right = calls.hold(a), calls.hold(b)
    for mode, test in {"eq": np.equal, "ne": np.not_equal, "lt": np.less, "gt": np.greater, "ge": np.greater_equal,
                       "le": np.less_equal}.items():
        mask, bits = calls.hold(np.zeros(a.shape, np.bool_)), calls.hold(np.zeros(a.shape, np.int8))
        calls.call(f"T.vcmp({left}, {right}, {mask}, {mode!r})", mask, test(a, b))
        calls.call(f"T.vcmp({left}, 1, {bits}, {mode!r})", bits, test(a, element.numpy.type(1)).astype(np.int8))
    calls.run()


@pytest.mark.parametrize("kind", ["int8", "int16", "int32"])
def test_shift_right_rounds(batch: Callable[[str], Batch], rng: np.random.Generator, kind: str) -> None:
    """``T.vshr`` adds half of the last place unless rounding is off; ``T.tile.bitwise_rshift`` never does."""
    values = numbers(rng, "", 0, dtype(kind), (5, 33))
    calls = batch("npuir")
    source = calls.hold(values)
    for amount in (0, 1, 3, 8 * values.itemsize - 1):
        for half, keyword in (((1 << amount) // 2, ""), (0, ", round=False")):
            target = calls.hold(values)
            wanted = reference.integers(lambda a, h=half, n=amount: (a + h) >> n)(values)
            calls.call(f"T.vshr({source}, {amount}, {target}{keyword})", target, wanted)
    calls.run()


@pytest.mark.parametrize("name", ["exp2", "log2"])
def test_a_temporary_of_the_caller(batch: Callable[[str], Batch], rng: np.random.Generator, name: str) -> None:
    """``T.vexp2(src, dst, tmp)``: the same values; the scratch tile need not be written."""
    calls, given = batch("npuir"), np.abs(rng.standard_normal((3, 33)).astype(np.float32)) + np.float32(0.1)
    source, scratch, target = calls.hold(given), calls.hold(given), calls.hold(given)
    calls.call(f"T.v{name}({source}, {target}, {scratch})", target, reference.ELEMENTWISE[name](given), reference.ULPS[name])
    calls.run()


@pytest.mark.parametrize(("name", "others", "wanted"), [
    ("clamp", "-1.0, 0.5", lambda a: np.clip(a, -1.0, 0.5)), ("clamp_min", "0.25", lambda a: np.maximum(a, 0.25)),
    ("clamp_max", "0.25", lambda a: np.minimum(a, 0.25)), ("round", "", np.rint)])
@pytest.mark.parametrize(("shape", "count"), [
    ((65,), 1), ((65,), 33), ((65,), 65), ((3, 33), 33), ((3, 33), 66), ((3, 33), 99)])
def test_leading_elements(batch: Callable[[str], Batch], rng: np.random.Generator, name: str, others: str, wanted: Any,
                          shape: tuple[int, ...], count: int) -> None:
    """``T.tile.clamp(dst, src, low, high, count)`` writes the first ``count`` elements in row-major order; the others do not
    change."""
    calls, given = batch("ascendc"), (rng.standard_normal(shape) * 2).astype(np.float32)
    held = rng.standard_normal(shape).astype(np.float32)
    leading = held.copy()
    leading.reshape(-1)[:count] = wanted(given).reshape(-1)[:count]
    target = calls.hold(held)
    words = ", ".join(part for part in (target, calls.hold(given), others, str(count)) if part)
    calls.call(f"T.tile.{name}({words})", target, leading)
    calls.run()


def test_a_mask_of_bytes(batch: Callable[[str], Batch], rng: np.random.Generator) -> None:
    """``T.vselect`` accepts a mask of int8 too: non-zero elements are true."""
    calls = batch("npuir")
    mask = rng.integers(-1, 2, (3, 33)).astype(np.int8)
    a, b = rng.standard_normal((2, 3, 33)).astype(np.float16)
    target = calls.hold(np.zeros_like(a))
    calls.call(f"T.vselect({calls.hold(mask)}, {calls.hold(a)}, {calls.hold(b)}, {target})", target, np.where(mask != 0, a, b))
    calls.run()


def test_parts_that_run_time_counts(batch: Callable[[str], Batch], rng: np.random.Generator) -> None:
    """Bounds from data: rows 1 to n, with an n that the kernel computed."""
    calls = batch("npuir")
    a, held = rng.standard_normal((7, 33)).astype(np.float32), rng.standard_normal((7, 33)).astype(np.float32)
    where = np.array([5, 0, 0, 0, 0, 0, 0, 0], np.int32)
    source, target, place = calls.hold(a), calls.hold(held), calls.hold(where)
    wanted = held.copy()
    wanted[1:5] = a[1:5] + a[1:5]
    calls.call(f"T.vadd({source}[1:{place}[0], :], {source}[1:{place}[0], :], {target}[1:{place}[0], :])", target, wanted)
    calls.run()


@pytest.mark.parametrize("entry", list(ops.composites()), ids=lambda entry: entry.name)
def test_a_composite_is_what_its_entry_says(rng: np.random.Generator, entry: ops.Composite) -> None:
    """The formula of the entry, which nothing executes, agrees with the steps that are."""
    inputs = [numbers(rng, entry.name, position, dtype("float32"), (5, 13)) for position in range(entry.inputs)]
    held = numbers(rng, entry.name, 0, dtype("float32"), (5, 13))
    given = [*inputs, held] if entry.accumulates else inputs
    np.testing.assert_allclose(entry.meaning(*given), expected(entry, inputs, held), rtol=1e-5, atol=1e-6)
