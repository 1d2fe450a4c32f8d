"""The operations of the interpreter, by their names in ``T``."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from importlib import import_module
from typing import Any

from tilelang_npu.interpreter.running_core import current, fail
from tilelang_npu.interpreter.typed_scalars import NeedsPoints

OPERATIONS: dict[str, Callable[..., Any]] = {}
_MODULES = ("scalar", "host_buffers", "movement", "vectors", "structured", "sync")


def operations() -> dict[str, Callable[..., Any]]:
    """Returns the table, after all modules have entered their operations."""
    if "sync_all" not in OPERATIONS:
        for module in _MODULES:
            import_module(f"tilelang_npu.interpreter.{module}")
    return OPERATIONS


def operation(name: str) -> Callable[..., Any]:
    """Returns the function that executes ``T.<name>``.

    Raises:
        TileError: T190, the interpreter does not have it.
    """
    if name not in operations():
        raise fail(f"the interpreter does not know T.{name}", "run the kernel compiled", "T190")
    return OPERATIONS[name]


def known(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Enters a function of scalars under these names."""

    def enter(function: Callable[..., Any]) -> Callable[..., Any]:
        OPERATIONS.update(dict.fromkeys(names, function))
        return function

    return enter


def tiles(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Enters a function of tiles under these names; in a ``T.Parallel`` it is executed for each point."""

    def enter(function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def call(*arguments: Any, **keywords: Any) -> Any:
            if current().points is not None:
                raise NeedsPoints
            return function(*arguments, **keywords)

        OPERATIONS.update(dict.fromkeys(names, call))
        return function

    return enter
