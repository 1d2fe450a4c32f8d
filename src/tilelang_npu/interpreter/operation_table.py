"""The table of the operations that the interpreter executes, by their names in ``T``."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from importlib import import_module
from typing import ParamSpec, TypeVar

from tilelang_npu.interpreter.running_core import current, fail
from tilelang_npu.interpreter.typed_scalars import NeedsPoints

P = ParamSpec("P")
R = TypeVar("R")
OPERATIONS: dict[str, Callable[..., object]] = {}
_MODULES = ("scalar", "host_buffers", "movement", "vectors", "structured", "threads", "sync", "scratch",
            "peers", "vector_lanes", "block_scaled_operands")


def operations() -> dict[str, Callable[..., object]]:
    """Imports all modules that define operations, and returns the table: for each name in ``T``, the function that executes it.
    """
    if "sync_all" not in OPERATIONS:
        for module in _MODULES:
            import_module(f"tilelang_npu.interpreter.{module}")
    return OPERATIONS


def operation(name: str) -> Callable[..., object]:
    """Returns the function that executes ``T.<name>``.

    Raises:
        TileError: T190, the interpreter does not support the operation.
    """
    if name not in operations():
        raise fail(f"the interpreter does not know T.{name}", "run the compiled kernel, without the interpreter", "T190")
    return OPERATIONS[name]


def known(*names: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Returns a decorator that adds a function on scalars to the table under the given names."""

    def enter(function: Callable[P, R]) -> Callable[P, R]:
        OPERATIONS.update(dict.fromkeys(names, function))
        return function

    return enter


def tiles(*names: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Returns a decorator that adds a function on tiles to the table under the given names.

    A ``T.Parallel`` whose body calls such a function is executed point by point.
    """

    def enter(function: Callable[P, R]) -> Callable[P, R]:
        @wraps(function)
        def call(*arguments: P.args, **keywords: P.kwargs) -> R:
            if current().points is not None:
                raise NeedsPoints
            return function(*arguments, **keywords)

        known(*names)(call)
        return function

    return enter
