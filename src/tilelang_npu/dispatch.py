"""The interpreted kernel that the calling thread executes, if any: functions of the language check it before they trace."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from functools import wraps
from types import FunctionType
from typing import Any, Protocol, TypeVar

from tilelang_npu.errors import door


class Interpreting(Protocol):
    """An interpreted kernel, as the language sees it."""

    def call(self, name: str, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
        """Executes the language function ``name``, such as ``copy`` or ``tile.add``."""

    def inline(self, function: FunctionType, arguments: Sequence[Any], keywords: Mapping[str, Any], *, hygienic: bool) -> Any:
        """Calls the function of a macro."""


class _Thread(threading.local):
    running: Any = None


THREAD = _Thread()
"""``running``: the interpreted kernel of this thread, or None."""

_DISPATCHED: dict[FunctionType, Any] = {}
T = TypeVar("T")


def interpreting() -> Interpreting | None:
    """Returns the interpreted kernel that this thread executes, or None."""
    found: Interpreting | None = THREAD.running
    return found


def dispatched(name: str, function: T) -> T:
    """Returns a function that calls the interpreter while it runs in this thread, and ``function`` otherwise.

    Several names of one function give one function: the interpreter gets the first name.
    """
    if not isinstance(function, FunctionType):
        return function
    made: T = _DISPATCHED.get(function) or _DISPATCHED.setdefault(function, _wrapped(name, function))
    return made


def _wrapped(name: str, function: FunctionType) -> Any:
    @wraps(function)
    def call(*arguments: Any, **keywords: Any) -> Any:
        running = THREAD.running
        return function(*arguments, **keywords) if running is None else running.call(name, arguments, keywords)

    vars(call).pop("__tilelang_npu_door__", None)  # wraps() copied the mark, but this function is not wrapped by a door yet
    return door(call)
