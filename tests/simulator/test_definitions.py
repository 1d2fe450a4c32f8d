"""Names in generated code: their values are computed once, in the outermost possible loop, and are right."""

from __future__ import annotations

import numpy as np
import pytest

from tilelang_npu.linear import Interval
from tilelang_npu.simulator.codegen.code_scopes import Atom, CodeScope, Int
from tilelang_npu.simulator.codegen.definitions import Definitions


def scopes(made: Definitions) -> list[CodeScope]:
    """Launch, block, and a loop in a loop."""
    outer = CodeScope("loop", made.block, 3)
    return [made.launch, made.block, outer, CodeScope("loop", outer, 4)]


def computed(levels: list[CodeScope], known: dict[str, int]) -> dict[str, int]:
    """Executes the lines of all scopes, outermost first, and returns the values of the names."""
    names = dict(known)
    for scope in levels:
        for line in scope.lines:
            exec(line.text, {}, names)
    return names


def test_random_sums_come_to_their_numbers_wherever_their_parts_are_known(rng: np.random.Generator) -> None:
    for _ in range(40):
        made = Definitions()
        levels = scopes(made)
        known = {f"n{place}": int(value) for place, value in enumerate(rng.integers(-50, 50, 6))}
        atoms = {name: made.atom(name, levels[rng.integers(4)]) for name in known}
        expected, value = int(rng.integers(-9, 9)), Int(0)
        value = value + expected
        for name in rng.choice(list(known), 5):
            factor = int(rng.integers(-4, 5))
            value, expected = value + atoms[name] * factor, expected + known[name] * factor
        name = made.name_of(value)
        assert eval(name, {}, computed(levels, known)) == expected
        for depth, scope in enumerate(levels):  # each line needs nothing from further in
            names = computed(levels[:depth], {atom: number for atom, number in known.items()
                                              if _scope(atoms[atom]).depth < depth})
            names |= {atom: number for atom, number in known.items() if _scope(atoms[atom]) is scope}
            for line in scope.lines:
                exec(line.text, {}, names)


def _scope(value: Int) -> CodeScope:
    found = value.single
    assert found is not None
    atom: Atom = found[0]
    return atom.scope


def test_what_is_known_further_out_is_computed_there() -> None:
    made = Definitions()
    launch, block, loop, _ = scopes(made)
    size, number, turn = made.atom("size", launch), made.atom("bid", block), made.atom("i", loop)
    made.name_of(size * 4 + number * 8 + turn * 2 + 3)
    for scope, inside, outside in ((launch, "size", "bid"), (block, "bid", "size"), (loop, "i", "bid")):
        (line,) = scope.lines
        _, _, text = line.text.partition(" = ")
        assert inside in text.split()
        assert outside not in text.split()


def test_equal_expressions_are_computed_once_inside_of_what_has_them() -> None:
    made = Definitions()
    launch, block, loop, inner = scopes(made)
    first = made.define("a + b", block)
    assert made.define("a + b", inner) == first  # known around it
    assert (len(block.lines), len(inner.lines)) == (1, 0)
    assert made.define("a + b", launch) != first  # not known further out
    assert made.define("-17", loop) == "-17"
    assert made.define("name", loop) == "name"
    assert not loop.lines


def test_names_and_objects_are_each_there_once() -> None:
    made = Definitions()
    names = [made.fresh(prefix) for prefix in "xyxxy"]
    assert len(set(names)) == len(names)
    one, other = [1], [1]
    assert made.constant(one, "c") == made.constant(one, "c") != made.constant(other, "c")
    assert made.globals[made.constant(one, "c")] is one


@pytest.mark.parametrize("shape", [(3, 5, 7), (1, 4), (6,), ()])
def test_strides_without_gaps_are_numpys(shape: tuple[int, ...]) -> None:
    made = Definitions()
    assert [stride.constant for stride in made.row_major([Int(size) for size in shape], 4)] == [
        *np.zeros(shape, np.float32).strides]


def test_strides_of_sizes_that_a_run_knows() -> None:
    made = Definitions()
    sizes = [made.atom(name, made.launch, Interval(1, 100)) for name in ("m", "n", "k")]
    strides = [made.name_of(stride) for stride in made.row_major(sizes, 2)]
    names = computed([made.launch], {"m": 3, "n": 5, "k": 7})
    assert [eval(stride, {}, names) for stride in strides] == [*np.zeros((3, 5, 7), np.float16).strides]


def test_a_number_that_follows_from_its_bounds_is_no_name_unless_computing_it_may_fail() -> None:
    made = Definitions()
    assert made.define_integer("n % 1", made.block, Interval.at(0)) == Int(0)
    assert not made.block.lines
    assert not made.define_integer("a[7]", made.block, Interval.at(0), safe=False).known
    assert len(made.block.lines) == 1
