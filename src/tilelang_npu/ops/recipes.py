"""A registry of objects that factory functions return, so that a pickle can name an object by its factory and its arguments.

The pair of the factory function and its arguments is called the recipe of the object.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeVar

__all__ = ["forget", "made", "recipe_of"]

MadeT = TypeVar("MadeT")
Recipe = tuple[Callable[..., object], tuple[Hashable, ...]]

_MADE: dict[Recipe, Any] = {}  # each value is what its factory returns
_RECIPES: dict[int, Recipe] = {}


def made(make: Callable[..., MadeT], *arguments: Hashable) -> MadeT:
    """Returns ``make(*arguments)``, and the same object for every later call with equal arguments.

    ``make`` must be a function of a module, so that it can be pickled.
    """
    recipe = make, arguments
    found: MadeT | None = _MADE.get(recipe)
    if found is None:
        found = _MADE[recipe] = make(*arguments)
        _RECIPES[id(found)] = recipe  # the object is never freed, so its id stays unique
    return found


def recipe_of(thing: object) -> Recipe | None:
    """Returns the recipe of an object that :func:`made` returned: the factory and its arguments; None for other objects."""
    return _RECIPES.get(id(thing))


def forget(argument: object) -> None:
    """Removes all objects whose recipe contains ``argument``.

    A plug-in that replaces an operation of the op table passes the operation's name.
    """
    for recipe in [recipe for recipe in _MADE if argument in recipe[1]]:
        del _RECIPES[id(_MADE.pop(recipe))]
