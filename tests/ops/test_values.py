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
    """Ordinary inputs of an operation: all integers of the type, floats of both signs where it takes them."""
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


def legal_cases(kinds: type | tuple[type, ...]) -> list[Any]:
    """Entry, name and element type: one name of each dialect."""
    cases = []
    for entry, name in surface.covered():
        if isinstance(entry, kinds) and entry.name != "cast":
            legal = [element for element in surface.ALL_TYPES if surface.is_legal(entry, element, surface.dialect_of(name))]
            cases += [pytest.param(entry, name, element, id=f"{name}-{element}") for element in legal]
    return cases


def expected(entry: ops.Elementwise, inputs: Sequence[np.ndarray], held: np.ndarray) -> np.ndarray:
    values = np.broadcast_arrays(*inputs)
    if getattr(entry, "accumulates", False):
        values = [*values, np.broadcast_to(held, values[0].shape)]
    return np.broadcast_to(reference.ELEMENTWISE[entry.name](*values), held.shape)


def add_call(batch: Batch, entry: ops.Elementwise, name: str, held: np.ndarray, inputs: Sequence[np.ndarray | str],
             texts: Sequence[str | None]) -> None:
    """One call: ``texts`` replaces a buffer by a scalar, or by the destination where it is ``d``."""
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
    """Shapes, in place, scalars; in one of the dialects also unit axes that repeat, and rectangles of larger buffers."""
    dialect = surface.dialect_of(name)
    calls = batch(dialect)
    thorough = dialect == "npuir" or len(surface.main_names(entry)) == 1
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


@pytest.mark.parametrize("dialect", ["ascendc", "npuir"])
@pytest.mark.parametrize(("entry", "element"), [
    pytest.param(entry, element, id=f"{entry.name}-{element}") for entry in ops.operations().values()
    if isinstance(entry, ops.Reduce) for element in surface.ALL_TYPES if surface.is_legal(entry, element, "npuir")])
def test_reductions(batch: Callable[[str], Batch], rng: np.random.Generator, entry: ops.Reduce, element: DType,
                    dialect: str) -> None:
    """Each axis of each shape; into what the destination holds; real sizes; sums of floats are exact ones."""
    if not surface.is_legal(entry, element, dialect):
        pytest.skip("not of this dialect")
    calls = batch(dialect)

    def values(shape: tuple[int, ...]) -> np.ndarray:
        if element.is_float:
            return rng.integers(-8, 9, shape).astype(element.numpy)
        return numbers(rng, "", 0, element, shape)

    def combined(held: np.ndarray, result: np.ndarray) -> np.ndarray:
        name = {"reduce_sum": "add", "reduce_max": "max", "reduce_min": "min"}[entry.name]
        return reference.ELEMENTWISE[name](held, result)

    for shape in [(1,), (65,), (7, 1), (5, 129), (2, 3, 9)]:
        for axis in range(len(shape)):
            given = values(shape)
            wanted = reference.REDUCTIONS[entry.name](given, axis)
            source, target = calls.hold(given), calls.hold(values(wanted.shape))
            calls.call(f"T.{entry.name}({source}, {target}, dim={axis})", target, wanted)
    given, held = values((5, 37)), values((5, 1))
    if entry.name != "reduce_sum" or element.is_signed:
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
    calls.call(f"T.reduce_{mode}({source}, {target})", source, np.abs(given))
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
    """``T.vshr`` adds half of the last place unless it is told not to; ``T.tile.bitwise_rshift`` never does."""
    values = numbers(rng, "", 0, dtype(kind), (5, 33))
    calls = batch("npuir")
    source = calls.hold(values)
    for amount in (0, 1, 3, 8 * values.itemsize - 1):
        for half, keyword in (((1 << amount) // 2, ""), (0, ", round=False")):
            target = calls.hold(values)
            wanted = reference.integers(lambda a, h=half, n=amount: (a + h) >> n)(values)
            calls.call(f"T.vshr({source}, {amount}, {target}{keyword})", target, wanted)
    calls.run()
