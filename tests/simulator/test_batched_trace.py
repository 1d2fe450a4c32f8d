"""Blocks that are traced at once have the same records as blocks traced separately; batched integers are those of each
block."""

from __future__ import annotations

import linecache
import operator
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tilelang_npu as tilelang
import tilelang_npu.language as T
from tilelang_npu.simulator import Launch
from tilelang_npu.simulator.machine.batched_integers import BatchedInt, BlockBatch, DivergedError, NotBatchableError
from tilelang_npu.simulator.machine.placeholder_data import PlaceholderData
from tilelang_npu.simulator.run import batched_execution, batched_trace
from tilelang_npu.simulator.run.arguments import bind
from tilelang_npu.simulator.run.batched_trace import trace_batched
from tilelang_npu.simulator.run.recorded_launch import offsets_key

OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "//": operator.floordiv, "%": operator.mod, "&": operator.and_,
    "<<": operator.lshift, ">>": operator.rshift, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
    "==": operator.eq, "!=": operator.ne, "if": lambda a, b: a if a < b else b, "range": lambda a, b: list(range(a, b, 7)),
    "abs": lambda a, b: abs(a) + b, "or": lambda a, b: a or b}
SMALL = ("//", "%", "&", "<<", ">>")

steps = st.lists(st.tuples(st.sampled_from(sorted(OPERATORS)), st.integers(0, 4), st.integers(0, 4), st.integers(-70, 70),
                           st.booleans()), min_size=1, max_size=8)


def computed(number: Any, program: list[tuple[str, int, int, int, bool]]) -> list[Any]:
    """The values of a chain of operations, each on two of those before or on one and a literal."""
    values = [number]
    for name, one, other, literal, both in program:
        integers = [value for value in values if not isinstance(value, (bool, list))]
        first, second = integers[one % len(integers)], integers[other % len(integers)] if both else literal
        if name in SMALL:
            second = abs(literal) + (name in ("//", "%"))
        if name in ("<<", ">>"):
            second %= 8
        if name == "range" and not (isinstance(first, BatchedInt) or abs(first) < 5000):
            continue
        values.append(OPERATORS[name](first, second))
    return values


@settings(max_examples=300, deadline=None)
@given(program=steps, start=st.integers(0, 60000), count=st.integers(2, 40), step=st.integers(1, 3))
def test_an_integer_of_many_blocks_is_that_of_each(program: list[tuple[str, int, int, int, bool]], start: int, count: int,
                                                   step: int) -> None:
    numbers = np.arange(start, start + count * step, step)
    blocks = BlockBatch(numbers)
    groups = None
    try:
        values = computed(blocks.number, program)
    except DivergedError as parted:
        groups = parted.groups
    except NotBatchableError:
        return
    if groups is not None:
        assert len(groups) > 1
        assert sorted(np.concatenate(groups).tolist()) == list(range(count))
        return
    for place, number in enumerate(numbers.tolist()):
        for value, expected in zip(values, computed(number, program), strict=True):
            assert type(expected) is type(value) or (isinstance(value, BatchedInt) and isinstance(expected, int))
            assert (int(value.values()[place]) if isinstance(value, BatchedInt) else value) == expected


def test_a_number_too_large_for_an_array_is_not_computed_with() -> None:
    number = BlockBatch(np.arange(10)).number
    assert isinstance(number, BatchedInt)
    large = number * (1 << 61)
    assert isinstance(large, BatchedInt)
    with pytest.raises(NotBatchableError):
        large.values()
    assert large * 3 - large * 3 == 0


def convolution(kind: str, out: int = 4, depth: int = 2, size: int = 6) -> Any:
    """A 3x3 convolution as loops over elements: of tiles of one, or read by the scalar unit and summed up in a buffer or a
    variable."""

    @T.prim_func
    def tiles(X: T.Tensor((depth, size + 2, size + 2), "float32"), F: T.Tensor((out, depth * 9), "float32"),
              Y: T.Tensor((out, size * size), "float32")):
        with T.Kernel(out * size, is_npu=True) as (block, _):
            x = T.alloc_shared((1, 1), "float32")
            f = T.alloc_shared((1, 1), "float32")
            y = T.alloc_shared((1, 1), "float32")
            for w in T.serial(size):
                T.vbrc(0.0, y)
                for c in T.serial(depth):
                    for i in T.serial(3):
                        for j in T.serial(3):
                            T.copy(X[c, block % size + i, w + j:w + j + 1], x)
                            T.copy(F[block // size, c * 9 + i * 3 + j], f)
                            T.vmul(x, f, x)
                            T.vadd(y, x, y)
                T.copy(y, Y[block // size, block % size * size + w])

    @T.prim_func
    def elements(X: T.Tensor((depth, size + 2, size + 2), "float32"), F: T.Tensor((out, depth * 9), "float32"),
                 Y: T.Tensor((out, size * size), "float32")):
        with T.Kernel(out * size, is_npu=True) as (block, _):
            for w in T.serial(size):
                y = T.alloc_shared((1,), "float32")
                y[0] = 0.0
                for c in T.serial(depth):
                    for i in T.serial(3):
                        for j in T.serial(3):
                            y[0] = y[0] + X[c, block % size + i, w + j] * F[block // size, c * 9 + i * 3 + j]
                Y[block // size, block % size * size + w] = y[0]

    @T.prim_func
    def variable(X: T.Tensor((depth, size + 2, size + 2), "float32"), F: T.Tensor((out, depth * 9), "float32"),
                 Y: T.Tensor((out, size * size), "float32")):
        with T.Kernel(out * size, is_npu=True) as (block, _):
            for w in T.serial(size):
                y = T.alloc_var("float32")
                y = 0.0
                for c in T.serial(depth):
                    for i in T.serial(3):
                        for j in T.serial(3):
                            y = y + X[c, block % size + i, w + j] * F[block // size, c * 9 + i * 3 + j]
                Y[block // size, block % size * size + w] = y

    return tilelang.compile({"tiles": tiles, "elements": elements, "variable": variable}[kind], target="npuir")


def convolved(x: Any, f: Any, size: int) -> Any:
    """In the order of the loops, each step rounded to f32."""
    depth = len(x)
    total = np.zeros((len(f), size, size), np.float32)
    for c in range(depth):
        for i in range(3):
            for j in range(3):
                total += f[:, c * 9 + i * 3 + j][:, None, None] * x[c, i:i + size, j:j + size]
    return total.reshape(len(f), -1)


def apart(kernel: Any, args: list[Any], blocks: int) -> Any:
    """Run a launch as it would run, and block by block; all must be equal. The plan that it ran by."""
    program = kernel.program
    mine, alone = ([arg.copy() if isinstance(arg, np.ndarray) else arg for arg in args] for _ in range(2))
    found, expected = program.run(mine, blocks=blocks), program.run(alone, blocks=blocks, order=range(blocks))
    for one, other in zip(mine, alone, strict=True):
        assert not isinstance(one, np.ndarray) or one.tobytes() == other.tobytes()
    for run, same in zip(found.blocks, expected.blocks, strict=True):
        assert (run.block, run.streams) == (same.block, same.streams)
        assert [list(offsets) for offsets in run.gm] == [list(offsets) for offsets in same.gm]
        assert [offsets[place] for offsets in run.gm for place in range(-3, 3) if len(offsets) > 3] == [
            offsets[place] for offsets in same.gm for place in range(-3, 3) if len(offsets) > 3]
    first, second = Launch(found), Launch(expected)
    assert first.cycles == second.cycles
    assert list(map(str, first.hazards)) == list(map(str, second.hazards))
    args[:] = mine
    return program._planned[1]


@pytest.mark.parametrize("kind", ["tiles", "elements", "variable"])
def test_a_convolution_as_loops_over_elements_runs_all_blocks_at_once(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batched_execution, "LEAST_OPS", 1)
    rng = np.random.default_rng(0)
    x, f = rng.standard_normal((2, 8, 8), np.float32), rng.standard_normal((4, 18), np.float32)
    args = [x, f, np.zeros((4, 36), np.float32)]
    plan = apart(convolution(kind), args, 24)
    assert plan is not None
    assert [batch.layouts[0].count for batch in plan.batches] == [24]
    assert args[2].tobytes() == convolved(x, f, 6).tobytes()


def traces(kernel: Any, args: list[Any], blocks: int) -> list[int] | None:
    """Returns how many blocks were traced at a time, None if they were not; checks the records against separate traces."""
    program = kernel.program
    bound = bind(program.name, program.declared, args, blocks, program.workspace, program.used, grid=program.has_grid)
    found = trace_batched(program, bound, blocks, None, [PlaceholderData() for _ in program.traced])
    if found is None:
        return None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batched_trace, "LEAST", blocks + 1)
        expected = program.trace(args, blocks=blocks).blocks
    for run, same in zip(found, expected, strict=True):
        assert (run.block, run.streams) == (same.block, same.streams)
        assert [list(offsets) for offsets in run.gm] == [list(offsets) for offsets in same.gm]
    return sorted(Counter(map(offsets_key, found)).values())


def tails(rows: int) -> Any:
    """Tiles of which the last ones are partial, or past the end of the tensor."""

    @T.prim_func
    def tails(X: T.Tensor((rows, 64), "float32"), Y: T.Tensor((rows, 64), "float32")):
        with T.Kernel(24, is_npu=True) as (block, _):
            x = T.alloc_shared((16, 64), "float32")
            T.copy(X[block * 16, 0], x)
            T.vexp(x, x)
            T.copy(x, Y[block * 16, 0])

    return tilelang.compile(tails, target="npuir")


def test_blocks_with_smaller_tiles_are_traced_by_themselves() -> None:
    args = [np.zeros((384, 64), np.float32) for _ in range(2)]
    assert traces(tails(384), args, 24) == [24]
    args = [np.zeros((256, 64), np.float32) for _ in range(2)]
    assert traces(tails(256), args, 24) == [8, 16]
    args = [np.zeros((250, 64), np.float32) for _ in range(2)]
    assert traces(tails(250), args, 24) == [1, 8, 15]


def test_blocks_with_another_scalar_operand_are_traced_by_themselves() -> None:
    """The number that a block adds is known to be the block's, unless the trace has read a float that it does not know."""
    def added(read: bool) -> Any:
        @T.prim_func
        def added(X: T.Tensor((16, 64), "float32"), Y: T.Tensor((16, 64), "float32")):
            with T.Kernel(16, is_npu=True) as (block, _):
                x = T.alloc_shared((1, 64), "float32")
                T.copy(X[block, 0], x)
                if read:
                    Y[block, 1] = X[block, 0]
                T.vadd(x, T.cast(block // 8, "float32"), x)
                T.copy(x, Y[block, 0])

        return tilelang.compile(added, target="npuir")

    args = [np.zeros((16, 64), np.float32) for _ in range(2)]
    assert traces(added(read=False), args, 16) == [8, 8]
    assert traces(added(read=True), args, 16) is None


def test_an_access_past_the_tensor_is_reported_for_the_first_block_with_it() -> None:
    @T.prim_func
    def beyond(X: T.Tensor((64, 64), "float32"), Y: T.Tensor((64, 64), "float32")):
        with T.Kernel(16, is_npu=True) as (block, _):
            Y[block * 5, 0] = X[block * 5, 0]

    kernel = tilelang.compile(beyond, target="npuir")
    arrays = [np.zeros((64, 64), np.float32) for _ in range(2)]
    assert traces(kernel, arrays, 16) is None
    with pytest.raises(tilelang.TileError, match=r"index 65 .* in block 13"):
        kernel.program.run(arrays, blocks=16)


@pytest.mark.parametrize("across", [False, True])
def test_blocks_that_write_between_each_other_s_bytes(across: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Columns of one matrix: they are disjoint, unless one block reads elements that another one writes."""
    monkeypatch.setattr(batched_execution, "LEAST_OPS", 1)

    @T.prim_func
    def columns(X: T.Tensor((64, 16), "float32"), Y: T.Tensor((64, 16), "float32")):
        with T.Kernel(16, is_npu=True) as (block, _):
            for i in T.serial(64):
                Y[i, block] = X[i, (block + 1) % 16] + X[i, block]

    kernel = tilelang.compile(columns, target="npuir")
    x = np.random.default_rng(0).standard_normal((64, 16), np.float32)
    args = [x, x if across else np.zeros_like(x)]
    if across:
        expected, shared = x.copy(), x.copy()
        for block in range(16):
            expected[:, block] += expected[:, (block + 1) % 16]
        kernel.program.run([shared, shared], blocks=16)
        assert shared.tobytes() == expected.tobytes()
        assert kernel.program._planned[1] is None
    else:
        assert apart(kernel, args, 16) is not None
        assert args[1].tobytes() == (np.roll(x, -1, 1) + x).tobytes()


def test_a_number_of_the_block_that_is_stored_is_not_the_first_block_s(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batched_execution, "LEAST_OPS", 1)

    @T.prim_func
    def numbered(X: T.Tensor((16, 8), "float32"), Y: T.Tensor((16, 8), "float32")):
        with T.Kernel(16, is_npu=True) as (block, _):
            for i in T.serial(8):
                Y[block, i] = X[block, i] + T.cast(block, "float32")

    x = np.random.default_rng(0).standard_normal((16, 8), np.float32)
    args = [x, np.zeros_like(x)]
    apart(tilelang.compile(numbered, target="npuir"), args, 16)
    assert args[1].tobytes() == (x + np.arange(16, dtype=np.float32)[:, None]).tobytes()


def test_a_loop_that_data_end_runs_block_by_block(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batched_execution, "LEAST_OPS", 1)

    @T.prim_func
    def counts(X: T.Tensor((16,), "int32"), Y: T.Tensor((16, 8), "float32")):
        with T.Kernel(16, is_npu=True) as (block, _):
            for i in T.serial(X[block]):
                Y[block, i] = 1.0

    lengths = np.arange(16, dtype=np.int32) % 9
    args = [lengths, np.zeros((16, 8), np.float32)]
    assert apart(tilelang.compile(counts, target="npuir"), args, 16) is None
    assert args[1].sum(axis=1).tolist() == lengths.tolist()


EXPRESSIONS: dict[str, tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Any]]] = {
    "sum": (lambda a, b: a + b, lambda a, b: a + b), "difference": (lambda a, b: a - b, lambda a, b: a - b),
    "product": (lambda a, b: a * b, lambda a, b: a * b), "negative": (lambda a, b: -a * b, lambda a, b: -a * b),
    "larger": (lambda a, b: T.max(a, b) * a, lambda a, b: np.maximum(a, b) * a),
    "smaller": (lambda a, b: T.min(a, b) - b, lambda a, b: np.minimum(a, b) - b)}


@settings(max_examples=12, deadline=None)
@given(first=st.sampled_from(sorted(EXPRESSIONS)), second=st.sampled_from(sorted(EXPRESSIONS)),
       kind=st.sampled_from(["float16", "float32"]), storage=st.sampled_from(["buffer", "variable"]), swap=st.booleans(),
       seed=st.integers(0, 99))
def test_random_arithmetic_on_elements_is_that_of_each_block(first: str, second: str, kind: str, storage: str, swap: bool,
                                                             seed: int) -> None:
    one, one_of_arrays = EXPRESSIONS[first]
    two, two_of_arrays = EXPRESSIONS[second]

    @T.prim_func
    def buffer(X: T.Tensor((12, 5), kind), Z: T.Tensor((12, 5), kind), Y: T.Tensor((12, 5), kind)):
        with T.Kernel(12, is_npu=True) as (block, _):
            total = T.alloc_shared((1,), kind)
            total[0] = 1.0
            for i in T.serial(5):
                total[0] = two(one(X[block, i], Z[11 - block if swap else block, i]), total[0])
                Y[block, i] = total[0]

    @T.prim_func
    def variable(X: T.Tensor((12, 5), kind), Z: T.Tensor((12, 5), kind), Y: T.Tensor((12, 5), kind)):
        with T.Kernel(12, is_npu=True) as (block, _):
            total = T.alloc_var(kind)
            total = 1.0
            for i in T.serial(5):
                total = two(one(X[block, i], Z[11 - block if swap else block, i]), total)
                Y[block, i] = total

    kernel = tilelang.compile(buffer if storage == "buffer" else variable, target="npuir")
    rng = np.random.default_rng(seed)
    x, z = (rng.standard_normal((12, 5)).astype(kind) for _ in range(2))
    args = [x, z, np.zeros_like(x)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batched_execution, "LEAST_OPS", 1)
        assert apart(kernel, args, 12) is not None
    total = np.ones(12, kind)
    for i in range(5):
        total = two_of_arrays(one_of_arrays(x[:, i], (z[::-1] if swap else z)[:, i]), total)
        np.testing.assert_allclose(args[2][:, i].astype(np.float32), total.astype(np.float32), rtol=1e-2, atol=1e-2)


def written(text: str) -> Any:
    """The prim_func of a source text."""
    name = f"<loops {len(linecache.cache)}>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    scope: dict[str, Any] = {"T": T}
    exec(compile(text, name, "exec"), scope)
    return scope["main"]


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_random_loops_over_elements_are_those_of_each_block(data: st.DataObject) -> None:
    """Trip counts, conditions and addresses that depend on the block or not; results in place or in another tensor."""
    blocks, rows = data.draw(st.sampled_from([8, 12, 24])), 6
    bounds = data.draw(st.sampled_from(["rows", "block % 3 + 1", "T.min(rows, block + 2)"]))
    place = data.draw(st.sampled_from(["block, i", "blocks - 1 - block, i",
                                       "block // 2 * 2 + 1 - block % 2, (i + block) % rows"]))
    guard = data.draw(st.sampled_from(["", "if block < 4:", "if i + block % 4 < 3:", "if block % 2 == 0:"]))
    through = data.draw(st.sampled_from(["Y[block, i]", "t[0]", "t[i]"]))
    value = data.draw(st.sampled_from(["a + b", "a * b - 0.5", "T.max(a, b)", "a * T.cast(block, 'float32') + b", "-a"]))
    in_place = data.draw(st.booleans())
    body = f"""
@T.prim_func
def main(X: T.Tensor(({blocks}, {rows}), "float32"), Y: T.Tensor(({blocks}, {rows}), "float32")):
    with T.Kernel({blocks}, is_npu=True) as (block, _):
        t = T.alloc_shared(({rows},), "float32")
        for i in T.serial({rows}):
            t[i] = 0.25
        for i in T.serial({bounds.replace("rows", str(rows))}):
            {guard.replace("blocks", str(blocks)) or "if True:"}
                a = X[{place.replace("blocks", str(blocks)).replace("rows", str(rows))}]
                b = {through}
                {through} = {value}
        for i in T.serial({rows}):
            Y[block, i] = Y[block, i] + t[i]
"""
    kernel = tilelang.compile(written(body), target="npuir")
    rng = np.random.default_rng(data.draw(st.integers(0, 9)))
    x, y = (rng.standard_normal((blocks, rows)).astype(np.float32) for _ in range(2))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batched_execution, "LEAST_OPS", 1)
        patch.setattr(batched_trace, "LEAST", 2)
        traces(kernel, [x, x if in_place else y], blocks)
        mine, alone = x.copy(), x.copy()
        program = kernel.program
        others = [mine, alone] if in_place else [y.copy(), y.copy()]
        found = program.run([mine, others[0]], blocks=blocks)
        expected = program.run([alone, others[1]], blocks=blocks, order=range(blocks))
        assert mine.tobytes() == alone.tobytes()
        assert others[0].tobytes() == others[1].tobytes()
        assert Launch(found).cycles == Launch(expected).cycles
        assert list(map(str, Launch(found).hazards)) == list(map(str, Launch(expected).hazards))
