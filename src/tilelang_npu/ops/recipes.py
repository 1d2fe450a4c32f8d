"""Functions that functions make, each once, and what they were made from: so that a pickle can name them."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

__all__ = ["made", "recipe_of"]

Recipe = tuple[Callable[..., Any], tuple[Hashable, ...]]

_MADE: dict[Recipe, Any] = {}
_RECIPES: dict[int, Recipe] = {}


def made(make: Callable[..., Any], *arguments: Hashable) -> Any:
    """What ``make``, a function of a module, gives for these arguments: the same object each time."""
    recipe = make, arguments
    found = _MADE.get(recipe)
    if found is None:
        found = _MADE[recipe] = make(*arguments)
        _RECIPES[id(found)] = recipe  # it is never let go, so no other object gets its place
    return found


def recipe_of(thing: object) -> Recipe | None:
    """What :func:`made` was given for an object; None for one of another origin."""
    return _RECIPES.get(id(thing))
