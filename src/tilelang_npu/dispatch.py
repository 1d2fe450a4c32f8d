"""Sends calls of language functions (``T.copy``, ...) to the interpreter while the calling thread interprets a kernel.

Outside of an interpreted kernel, a language function traces: it emits operations into the kernel that is being built.

Keyword arguments of TileLang for GPUs that do not change what a call computes on an NPU are removed from the call before.
"""

from __future__ import annotations

import dis
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from types import FunctionType
from typing import Any, Protocol, TypeVar

from tilelang_npu.errors import door


class Interpreting(Protocol):
    """The interface of an interpreted kernel that language functions call."""

    def call(self, name: str, arguments: Sequence[object], keywords: Mapping[str, object]) -> object:
        """Executes a language function on the interpreter's values and returns its result.

        Args:
            name: the function's name after ``T.``, such as ``copy`` or ``tile.add``.
            arguments, keywords: the arguments of the call.
        """

    def inline(self, function: FunctionType, arguments: Sequence[object], keywords: Mapping[str, object], *,
               hygienic: bool) -> object:
        """Executes the body of a macro (``T.macro``) and returns its result.

        Args:
            function: the function under the decorator.
            arguments, keywords: the arguments of the call.
            hygienic: whether the body's free names are resolved where the macro is defined; otherwise the names that are
                visible at the call come first.
        """


WITHOUT_EFFECT: Mapping[str, tuple[str, ...]] = {
    "copy": ("annotations", "eviction_policy", "loop_layout", "prefer_instruction", "use_tma"),
    **dict.fromkeys(("gemm", "fill", "clear", "cumsum"), ("annotations",)),
    **dict.fromkeys(("reduce_sum", "reduce_max", "reduce_min", "reduce_prod", "reduce_absmax", "reduce_abssum", "reduce_any",
                     "reduce_all", "reduce_bitand", "reduce_bitor", "reduce_bitxor"), ("annotations", "batch")),
    "atomic_add": ("use_tma",),
}
"""For names of functions in ``T``, the keyword arguments that are accepted and have no effect."""


class _Thread(threading.local):
    running: Interpreting | None = None


THREAD = _Thread()
"""A thread-local object whose attribute ``running`` is the kernel that this thread interprets, or None."""

_DISPATCHED: dict[FunctionType, Any] = {}
T = TypeVar("T")


def assigned_references(function: FunctionType) -> frozenset[str]:
    """Returns the names of a macro's parameters that are annotated with ``T.Ref`` and that the macro assigns."""
    stored = {name for one in dis.get_instructions(function) if one.opname.startswith("STORE_")
              for name in (one.argval if isinstance(one.argval, tuple) else (one.argval,))}
    return frozenset(name for name, kind in function.__annotations__.items()
                     if name in stored and getattr(kind, "__name__", str(kind)).rpartition(".")[2] == "Ref")


def interpreting() -> Interpreting | None:
    """Returns the kernel that the calling thread interprets, or None if it interprets none."""
    return THREAD.running


def dispatched(name: str, function: T, note: Callable[..., None]) -> T:
    """Returns a wrapper that calls the interpreter while the calling thread interprets a kernel, and ``function`` otherwise.

    A second call for the same ``function`` returns the same wrapper, which passes the first ``name`` to the interpreter.

    Args:
        name: the name after ``T.`` under which the interpreter knows the function.
        function: a language function; anything that is not a Python function is returned unchanged.
        note: a function that is called with the name, and with the keyword arguments of :data:`WITHOUT_EFFECT` in a call.
    """
    if not isinstance(function, FunctionType):
        return function
    made: T = _DISPATCHED.get(function) or _DISPATCHED.setdefault(function, _wrapped(name, function, note))
    return made


def _wrapped(name: str, function: FunctionType, note: Callable[..., None]) -> Callable[..., object]:
    idle = WITHOUT_EFFECT.get(name, ())

    @wraps(function)
    def call(*arguments: object, **keywords: object) -> object:
        running = THREAD.running
        if idle and not keywords.keys().isdisjoint(idle):
            note(name, **{key: value for key, value in keywords.items() if key in idle})
            keywords = {key: value for key, value in keywords.items() if key not in idle}
        return function(*arguments, **keywords) if running is None else running.call(name, arguments, keywords)

    vars(call).pop("__tilelang_npu_door__", None)  # wraps() copied the mark, but this function is not wrapped by a door yet
    return door(call)
