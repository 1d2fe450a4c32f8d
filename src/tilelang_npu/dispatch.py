"""Which interpreted kernel the calling thread executes, if any: the language asks before it traces."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from types import FunctionType
from typing import Any, Protocol, TypeVar


class Interpreting(Protocol):
    """An interpreted kernel, as the language sees it."""

    def call(self, name: str, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
        """Carry out the language function ``name``, such as ``copy`` or ``tile.add``."""

    def inline(self, function: FunctionType, arguments: Sequence[Any], keywords: Mapping[str, Any], *, hygienic: bool) -> Any:
        """Call the function of a macro."""


class _Thread(threading.local):
    running: Any = None


THREAD = _Thread()
"""``running``: the interpreted kernel of this thread, or None."""

F = TypeVar("F", bound=Callable[..., Any])


def interpreting() -> Interpreting | None:
    """The interpreted kernel that this thread executes, or None."""
    found: Interpreting | None = THREAD.running
    return found


def dispatched(name: str, function: F) -> F:
    """A language function that is carried out by the interpreter where one runs, and otherwise as it is."""
    if not isinstance(function, FunctionType):
        return function

    @wraps(function)
    def call(*arguments: Any, **keywords: Any) -> Any:
        running = THREAD.running
        return function(*arguments, **keywords) if running is None else running.call(name, arguments, keywords)

    return call  # type: ignore[return-value]  # it is called as the function is
