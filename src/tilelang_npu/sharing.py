"""Values that several threads may ask for at the same time, and one of them computes: the others wait, and get the same object.

``functools.cached_property`` may compute a value in several threads (from Python 3.12 on), or holds one lock for all objects of
a class (before).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from threading import RLock
from typing import Any, Generic, TypeVar, overload

Owner = TypeVar("Owner")
Value = TypeVar("Value")
Key = TypeVar("Key")

_NONE: Any = object()
_LOCK = " lock"
"""The key of the lock in an object's ``__dict__``: no attribute has this name."""


class once(Generic[Owner, Value]):
    """A property that is computed when it is first read, by one thread, and kept in the object's ``__dict__``; or in that of
    the ``holder`` of several objects, once for all of them.
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


def state_of(instance: object) -> dict[str, Any]:
    """The attributes of an object for a pickle: without those that ``once`` computed, and can compute again."""
    return {name: value for name, value in vars(instance).items()
            if name != _LOCK and not isinstance(getattr(type(instance), name, None), once)}


class Kept(Generic[Key, Value]):
    """Values by key, each computed once. A failure is not kept: the next caller computes the value again."""

    def __init__(self) -> None:
        self._lock = RLock()
        self._locks: dict[Key, AbstractContextManager[Any]] = {}
        self._made: dict[Key, Value] = {}

    def get(self, key: Key, make: Callable[[], Value]) -> Value:
        """The value of a key. Threads that ask for other keys do not wait."""
        found: Value = self._made.get(key, _NONE)
        if found is not _NONE:
            return found
        with self._lock:
            own = self._locks.setdefault(key, RLock())
        with own:
            found = self._made.get(key, _NONE)
            if found is _NONE:
                found = self._made[key] = make()
            return found

    def clear(self) -> None:
        """Forgets all values, except those that are being computed."""
        self._made.clear()

    def __len__(self) -> int:
        return len(self._made)

    def __reduce__(self) -> tuple[Any, ...]:
        return _kept, (dict(self._made),)


def _kept(made: dict[Key, Value]) -> Kept[Key, Value]:
    kept: Kept[Key, Value] = Kept()
    kept._made.update(made)
    return kept
