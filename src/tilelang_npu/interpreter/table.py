"""The operations that the interpreter knows, by the names that they have under ``T``."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from importlib import import_module
from typing import Any

from tilelang_npu.errors import TileError
from tilelang_npu.interpreter.state import current
from tilelang_npu.interpreter.values import NeedsPoints

OPERATIONS: dict[str, Callable[..., Any]] = {}
_MODULES = ("scalars", "buffers", "movement", "vectors", "structured", "order")


def operation(name: str) -> Callable[..., Any]:
    """What carries out ``T.name``.

    Raises:
        TileError: T190, the interpreter does not know it.
    """
    if not OPERATIONS:
        for module in _MODULES:
            import_module(f"tilelang_npu.interpreter.{module}")
    found = OPERATIONS.get(name)
    if found is None:
        raise TileError(f"the interpreter does not know T.{name}", code="T190", location=current().location(),
                        help="run the kernel compiled")
    return found


def known(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Enter a function of scalars under these names."""

    def enter(function: Callable[..., Any]) -> Callable[..., Any]:
        for name in names:
            OPERATIONS[name] = function
        return function

    return enter


def tiles(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Enter a function of tiles under these names: in a ``T.Parallel`` it is carried out at each point."""

    def enter(function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def call(*arguments: Any, **keywords: Any) -> Any:
            if current().points is not None:
                raise NeedsPoints
            return function(*arguments, **keywords)

        for name in names:
            OPERATIONS[name] = call
        return function

    return enter
