"""Lazily computed values that threads share: one thread computes the value, and the others wait and get the same object.

``functools.cached_property`` does not guarantee this from Python 3.12 on: several threads can compute the value. Before Python
3.12, ``cached_property`` holds one lock for all objects of a class.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from threading import RLock
from typing import Generic, TypeVar, overload

Owner = TypeVar("Owner")
Value = TypeVar("Value")
Key = TypeVar("Key")

_LOCK = " lock"
"""The key of the lock in an object's ``__dict__``: no attribute has this name."""


PARSING = RLock()
"""Held by a thread that calls ``ast.parse``, which several threads may not call at the same time: it counts the depth of the
tree in a variable of the interpreter, and a thread that is interrupted there gets a SystemError (seen with CPython 3.11.7; see
python/cpython#106905)."""


def parse_python(text: str | bytes, filename: str = "<unknown>") -> ast.Module:
    """Returns the syntax tree of Python source, as ``ast.parse``, for one thread at a time (:data:`PARSING`).

    Raises:
        SyntaxError: the text is not valid Python.
    """
    with PARSING:
        return ast.parse(text, filename)


class once(Generic[Owner, Value]):
    """A decorator for a property that is computed once, by the first thread that reads it, and then stored.

    Args:
        make: the function that computes the property's value from the object.
        holder: a function of the object that returns the object in whose ``__dict__`` the value is stored. Objects with the
            same holder share one value. Without this function, the value is stored in the object itself.
    """

    def __init__(self, make: Callable[[Owner], Value], holder: Callable[[Owner], object] | None = None) -> None:
        self.func = make
        self._holder = holder
        self._name = make.__name__
        self.__doc__ = make.__doc__

    @overload
    def __get__(self, instance: None, owner: type) -> once[Owner, Value]: ...
    @overload
    def __get__(self, instance: Owner, owner: type) -> Value: ...
    def __get__(self, instance: Owner | None, owner: type) -> once[Owner, Value] | Value:
        if instance is None:
            return self
        kept = vars(instance if self._holder is None else self._holder(instance))
        with kept.setdefault(_LOCK, RLock()):
            if self._name not in kept:
                kept[self._name] = self.func(instance)
            value: Value = kept[self._name]
            return value


def state_of(instance: object) -> dict[str, object]:
    """Returns the attributes of an object to pickle: all except those that :class:`once` has computed and can compute again."""
    return {name: value for name, value in vars(instance).items()
            if name != _LOCK and not isinstance(getattr(type(instance), name, None), once)}


class Kept(Generic[Key, Value]):
    """A thread-safe cache that computes the value of each key once.

    If the computation of a value raises an exception, nothing is stored, and the next caller computes the value again.
    """

    def __init__(self) -> None:
        self._lock = RLock()
        self._locks: dict[Key, AbstractContextManager[object]] = {}
        self._made: dict[Key, Value] = {}

    def get(self, key: Key, make: Callable[[], Value]) -> Value:
        """Returns the stored value of a key, or computes, stores and returns it.

        Threads that ask for the same key wait until the value is computed; threads that ask for other keys do not.

        Args:
            key: the key.
            make: computes the value.
        """
        with suppress(KeyError):
            return self._made[key]
        with self._lock:
            own = self._locks.setdefault(key, RLock())
        with own:
            if key not in self._made:
                self._made[key] = make()
            return self._made[key]

    def clear(self) -> None:
        """Removes all stored values. A value that another thread is computing at this moment is stored afterwards."""
        self._made.clear()

    def __len__(self) -> int:
        return len(self._made)

    def __reduce__(self) -> tuple[object, ...]:
        return _kept, (dict(self._made),)


def _kept(made: dict[Key, Value]) -> Kept[Key, Value]:
    kept: Kept[Key, Value] = Kept()
    kept._made.update(made)
    return kept
