"""A registry of objects made by factory functions, so that a pickle can name an object by its factory and arguments."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

__all__ = ["made", "recipe_of"]

Recipe = tuple[Callable[..., Any], tuple[Hashable, ...]]

_MADE: dict[Recipe, Any] = {}
_RECIPES: dict[int, Recipe] = {}


def made(make: Callable[..., Any], *arguments: Hashable) -> Any:
    """Returns ``make(*arguments)``, the same object each time; ``make`` is a function of a module."""
    recipe = make, arguments
    found = _MADE.get(recipe)
    if found is None:
        found = _MADE[recipe] = make(*arguments)
        _RECIPES[id(found)] = recipe  # the object is never freed, so its id stays unique
    return found


def recipe_of(thing: object) -> Recipe | None:
    """The arguments of the call of :func:`made` that returned an object; None for any other object."""
    return _RECIPES.get(id(thing))
