"""Replaces attributes of another library's modules and classes, and restores them."""

from __future__ import annotations

import sys
from collections.abc import Callable

__all__ = ["Replacements", "answers_scripts", "is_called_by"]

_ABSENT = object()
"""In place of the former value of an attribute that the owner did not have itself: a class may have inherited it."""


class Replacements:
    """The attributes that one module of this package has replaced.

    A false object has replaced nothing.
    """

    def __init__(self) -> None:
        # owner, name, and former value, which is _ABSENT if the owner did not have the attribute itself
        self._former: list[tuple[object, str, object]] = []

    def __bool__(self) -> bool:
        return bool(self._former)

    def replace(self, owner: object, name: str, new: object) -> None:
        """Sets an attribute of a module or class, and stores its former value."""
        self._former.append((owner, name, vars(owner).get(name, _ABSENT)))
        setattr(owner, name, new)

    def undo(self) -> None:
        """Restores all attributes, the last replaced one first."""
        while self._former:
            owner, name, former = self._former.pop()
            if former is _ABSENT:
                delattr(owner, name)
            else:
                setattr(owner, name, former)


def is_called_by(packages: frozenset[str], depth: int) -> bool:
    """Whether the code that called a replacement belongs to one of the packages.

    Args:
        packages: the names of packages, without dots.
        depth: the number of frames between this function and that code: 1 if the function that calls ``is_called_by`` is the
            replacement itself.
    """
    name = sys._getframe(depth + 1).f_globals.get("__name__", "")
    return name.partition(".")[0] in packages


def answers_scripts(ours: Callable[..., object], original: Callable[..., object], packages: frozenset[str]
                    ) -> Callable[..., object]:
    """Returns a function that calls ``original`` for code of the packages, and ``ours`` for all other code."""

    def call(*args: object, **kwargs: object) -> object:
        return (original if is_called_by(packages, 1) else ours)(*args, **kwargs)

    call.__name__ = call.__qualname__ = getattr(original, "__name__", ours.__name__)
    call.__doc__ = ours.__doc__
    return call
