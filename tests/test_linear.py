"""Sums and bounds compared with Python: for all members of small intervals, and for samples of open ones."""

from __future__ import annotations

import operator
from collections.abc import Callable
from itertools import product
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilelang_npu.linear import ANY, NATURAL, Interval, Linear

SMALL = st.builds(lambda low, more: Interval(low, low + more), st.integers(-9, 9), st.integers(0, 6))
END = st.integers(-70, 70)
LARGE = 1 << 2000
"""More than a float can be: an open end must not be computed with as if it were one."""

FAR = 1 << 90
"""A member of every open interval: even divided or shifted by the ends of the closed ones it is more than they hold."""


def toward_zero(x: int, y: int) -> int:
    """The quotient rounded toward zero."""
    quotient = abs(x) // abs(y)
    return quotient if (x < 0) == (y < 0) else -quotient


# the operation on intervals, the operation on integers, and the valid second operands
OPERATIONS: dict[str, tuple[Callable[[Interval, Interval], Interval], Callable[[int, int], int], Callable[[int], bool]]] = {
    "add": (operator.add, operator.add, lambda y: True),
    "sub": (operator.sub, operator.sub, lambda y: True),
    "mul": (operator.mul, operator.mul, lambda y: True),
    "floordiv": (operator.floordiv, operator.floordiv, bool),
    "ceildiv": (Interval.ceildiv, lambda x, y: -(-x // y), bool),
    "truncdiv": (Interval.truncdiv, toward_zero, bool),
    "mod": (operator.mod, operator.mod, bool),
    "remainder": (Interval.remainder, lambda x, y: x - y * toward_zero(x, y), bool),
    "least": (Interval.least, min, lambda y: True),
    "greatest": (Interval.greatest, max, lambda y: True),
    "and": (operator.and_, operator.and_, lambda y: True),
    "rshift": (operator.rshift, operator.rshift, lambda y: y >= 0),
}
TIGHT = ("add", "sub", "mul", "floordiv", "ceildiv", "truncdiv", "least", "greatest", "rshift")


def some(interval: Interval) -> list[int]:
    """Members: those near the ends, those near zero, and far ones of an open interval."""
    low, high = max(interval.low, -FAR), min(interval.high, FAR)
    near = {int(end) + step for end in (low, high) for step in range(-3, 4)} | set(range(-9, 10)) | {-64, 64}
    return sorted(value for value in near if low <= value <= high)


@st.composite
def open_intervals(draw: st.DrawFn) -> Interval:
    """Closed, half open and open ones."""
    low, high = sorted((draw(END), draw(END)))
    return Interval(draw(st.sampled_from([low, -inf])), draw(st.sampled_from([high, inf])))


@pytest.mark.parametrize("name", OPERATIONS)
@given(a=open_intervals(), b=open_intervals())
def test_every_value_is_within(name: str, a: Interval, b: Interval) -> None:
    of_intervals, of_integers, counts = OPERATIONS[name]
    found = of_intervals(a, b)
    for x, y in product(some(a), filter(counts, some(b))):
        assert found.low <= of_integers(x, y) <= found.high


@pytest.mark.parametrize("name", TIGHT)
@given(a=SMALL, b=SMALL)
def test_the_bounds_are_reached(name: str, a: Interval, b: Interval) -> None:
    of_intervals, of_integers, counts = OPERATIONS[name]
    values = [of_integers(x, y) for x, y in product(a.numbers, filter(counts, b.numbers))]
    assert of_intervals(a, b) == (Interval(min(values), max(values)) if values else ANY)


@pytest.mark.parametrize("name", TIGHT)
@given(a=open_intervals(), b=open_intervals())
def test_an_open_end_is_one_that_is_passed(name: str, a: Interval, b: Interval) -> None:
    """If a bound is open, there are arbitrarily large values; if it is closed, it is attained."""
    of_intervals, of_integers, counts = OPERATIONS[name]
    values = [of_integers(x, y) for x, y in product(some(a), filter(counts, some(b)))]
    found = of_intervals(a, b)
    if values:
        assert min(values) < -1000 if found.low == -inf else found.low == min(values)
        assert max(values) > 1000 if found.high == inf else found.high == max(values)


@given(a=open_intervals(), b=open_intervals())
def test_join_and_meet(a: Interval, b: Interval) -> None:
    joined, met = a.join(b), a.meet(b)
    assert a.within(joined) and b.within(joined)
    assert {joined.low, joined.high} <= {a.low, a.high, b.low, b.high}
    for value in {*some(a), *some(b)}:
        one = Interval.at(value)
        assert one.within(met) == (one.within(a) and one.within(b))


SIGNS: dict[str, Callable[[int, int], bool]] = {"==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le,
                                                ">": operator.gt, ">=": operator.ge}


@pytest.mark.parametrize("sign", SIGNS)
@given(a=open_intervals())
def test_a_comparison_with_zero_is_decided_where_all_members_agree(sign: str, a: Interval) -> None:
    answers = {SIGNS[sign](value, 0) for value in some(a)}
    assert a.holds(sign) == (answers.pop() if len(answers) == 1 else None)


def test_known_results_with_open_ends() -> None:
    assert NATURAL.ceildiv(Interval.at(64)) == NATURAL
    assert Interval(1).ceildiv(Interval.at(64)) == Interval(1)
    assert Interval(1) * Interval.at(0) == Interval.at(0)
    assert ANY.remainder(Interval.at(8)) == Interval(-7, 7)
    assert ANY % Interval.at(8) == Interval(0, 7)
    assert ANY & Interval.at(15) == Interval(0, 15)
    assert Interval(-5, -5) // Interval(10) == Interval.at(-1)
    assert (ANY.constant, Interval(3, 3).constant, Interval(inf, inf).constant) == (None, 3, None)
    assert (NATURAL.closed, Interval(0, 3).closed) == (False, True)


@pytest.mark.parametrize("name", OPERATIONS)
def test_an_integer_may_be_larger_than_a_float(name: str) -> None:
    of_intervals, of_integers, _ = OPERATIONS[name]
    for a, b in product((Interval(-LARGE), Interval(0, LARGE), Interval.at(LARGE)), (NATURAL, Interval(1, LARGE))):
        found = of_intervals(a, b)
        assert found.low <= of_integers(LARGE, 3) <= found.high


@given(bits=st.integers(1, 8), signed=st.booleans(), value=st.integers(-1000, 1000))
def test_a_value_wraps_into_its_bits(bits: int, signed: bool, value: int) -> None:
    held = Interval.of_bits(bits, signed=signed)
    assert len(held.numbers) == 1 << bits and 0 in held.numbers and (-1 in held.numbers) == signed
    wrapped = held.wrapped(value)
    assert wrapped in held.numbers and (wrapped - value) % (1 << bits) == 0
    assert Interval.at(value).fitted(held) == (Interval.at(value) if value in held.numbers else held)


ATOMS = "xyz"
VALUES = st.fixed_dictionaries({atom: st.integers(-50, 50) for atom in ATOMS})
FACTOR = st.integers(-5, 5)


@st.composite
def sums(draw: st.DrawFn, depth: int = 4) -> tuple[Linear[str], Callable[[dict[str, int]], int]]:
    """A form, and the same expression as Python computes it."""
    kind = draw(st.sampled_from(["atom", "number"] + ["add", "sub", "times", "plus", "minus", "neg"] * (depth > 0)))
    if kind == "atom":
        atom = draw(st.sampled_from(ATOMS))
        return Linear.of(atom), lambda values: values[atom]
    number = draw(FACTOR)
    if kind == "number":
        return Linear(number), lambda values: number
    one, first = draw(sums(depth - 1))
    if kind == "times":
        return one * number, lambda values: first(values) * number
    if kind == "plus":
        return number + one, lambda values: first(values) + number
    if kind == "minus":
        return one - number, lambda values: first(values) - number
    if kind == "neg":
        return -one, lambda values: -first(values)
    two, second = draw(sums(depth - 1))
    if kind == "add":
        return one + two, lambda values: first(values) + second(values)
    return one - two, lambda values: first(values) - second(values)


def value_of(form: Linear[str], values: dict[str, int]) -> int:
    """The form's value: its terms one by one."""
    return form.constant + sum(factor * values[atom] for atom, factor in form.terms.items())


@given(both=sums(), values=VALUES)
def test_a_form_has_the_value_of_its_expression(both: tuple[Linear[str], Callable[[dict[str, int]], int]],
                                                values: dict[str, int]) -> None:
    form, expression = both
    assert value_of(form, values) == expression(values)
    assert 0 not in form.terms.values()


@given(one=sums(), two=sums())
def test_forms_are_equal_exactly_where_their_values_are(one: tuple[Linear[str], Callable[[dict[str, int]], int]],
                                                        two: tuple[Linear[str], Callable[[dict[str, int]], int]]) -> None:
    points = [dict.fromkeys(ATOMS, 0), *({**dict.fromkeys(ATOMS, 0), atom: 1} for atom in ATOMS)]  # they determine a form
    same = all(one[1](point) == two[1](point) for point in points)
    assert (one[0] == two[0]) == same
    assert not same or hash(one[0]) == hash(two[0])
    assert (one[0] - two[0]).known == (one[1](points[1]) - one[1](points[0]) == two[1](points[1]) - two[1](points[0]) and all(
        one[1](point) - two[1](point) == one[1](points[0]) - two[1](points[0]) for point in points))


@given(both=sums(), values=VALUES, divisor=st.sampled_from([1, 2, 3, 4, -2]))
def test_quotients_and_remainders_are_those_of_every_value(both: tuple[Linear[str], Callable[[dict[str, int]], int]],
                                                           values: dict[str, int], divisor: int) -> None:
    for form in (both[0], both[0] * divisor + both[0].constant):
        quotient, remainder = form.quotient(divisor), form.remainder(divisor)
        assert (quotient is None) == (remainder is None) == any(factor % divisor for factor in form.terms.values())
        if quotient is not None:
            assert value_of(quotient, values) == value_of(form, values) // divisor
            assert remainder == value_of(form, values) % divisor


@given(both=sums(), by=sums(), values=VALUES, atom=st.sampled_from(ATOMS), number=FACTOR)
def test_something_else_in_the_place_of_an_atom(both: tuple[Linear[str], Callable[[dict[str, int]], int]],
                                                by: tuple[Linear[str], Callable[[dict[str, int]], int]],
                                                values: dict[str, int], atom: str, number: int) -> None:
    form, expression = both
    assert value_of(form.substitute(atom, by[0]), values) == expression({**values, atom: by[1](values)})
    assert value_of(form.substitute(atom, number), values) == expression({**values, atom: number})
    assert form.factor(atom) == expression({**dict.fromkeys(ATOMS, 0), atom: 1}) - expression(dict.fromkeys(ATOMS, 0))


@given(both=sums(), given_=st.fixed_dictionaries(dict.fromkeys(ATOMS, SMALL)))
def test_the_bounds_of_a_form_are_its_smallest_and_largest_value(both: tuple[Linear[str], Callable[[dict[str, int]], int]],
                                                                 given_: dict[str, Interval]) -> None:
    form, expression = both
    values = [expression(dict(zip(ATOMS, point, strict=True)))
              for point in product(*(sorted({int(given_[atom].low), int(given_[atom].high)}) for atom in ATOMS))]
    assert form.bounds(given_.__getitem__) == Interval(min(values), max(values))


def test_the_bounds_of_a_form_may_be_open() -> None:
    form = 3 * Linear.of("x") - 2 * Linear.of("y") + 1
    assert form.bounds({"x": NATURAL, "y": Interval(-4, 5)}.__getitem__) == Interval(-9)
    assert form.bounds({"x": Interval(0, 1), "y": NATURAL}.__getitem__) == Interval(-inf, 4)
    assert Linear[str](LARGE).bounds({}.__getitem__) == Interval.at(LARGE)
    assert (Linear.of("x") + LARGE).bounds({"x": NATURAL}.__getitem__) == Interval(LARGE)
