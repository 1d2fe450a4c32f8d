"""The results of a factory function are cached by its arguments, and can be identified by them."""

from __future__ import annotations

from collections.abc import Callable

from tilelang_npu.ops.recipes import made, recipe_of

CALLS: list[tuple[int, int]] = []


def adder(more: int, times: int) -> Callable[[int], int]:
    CALLS.append((more, times))
    return lambda number: number * times + more


def test_the_same_arguments_give_the_same_object_made_once() -> None:
    CALLS.clear()
    first, other, again = made(adder, 1, 2), made(adder, 2, 1), made(adder, 1, 2)
    assert first is again
    assert first is not other
    assert CALLS == [(1, 2), (2, 1)]
    assert (first(10), other(10)) == (21, 12)


def test_a_recipe_makes_the_object_again_and_others_have_none() -> None:
    one = made(adder, 3, 4)
    recipe = recipe_of(one)
    assert recipe == (adder, (3, 4))
    assert made(recipe[0], *recipe[1]) is one
    assert recipe_of(adder(3, 4)) is None
