"""Thread indices of kernels for GPUs (``T.get_thread_binding``), which an ``if`` can compare with constants.

A branch for some of the threads is executed once if there are such threads, and the ``else`` part once if there are others.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import NoReturn

from tilelang_npu.errors import TileError
from tilelang_npu.interpreter.operation_table import known
from tilelang_npu.interpreter.running_core import current, fail


class Guard:
    """A condition on the index of a thread.

    Attributes:
        sides: whether there are threads for which the condition holds, and whether there are others.
    """

    def __init__(self, chosen: int, count: int) -> None:
        self.sides = chosen > 0, chosen < count

    def __bool__(self) -> bool:
        raise _error()


class RestOfGuard:
    """A condition with ``and`` whose first part is a condition on a thread, in an ``if`` without an ``else`` part.

    Attributes:
        rest: the value of the other parts, or False if there is no thread for which the first part holds.
    """

    def __init__(self, guard: Guard, rest: object) -> None:
        self.guard, self.rest = guard, rest

    def __bool__(self) -> bool:
        return bool(self.rest)


class Thread:
    """The index of a thread along an axis of a block."""

    def __init__(self, count: int) -> None:
        self._count = count

    __hash__ = object.__hash__

    def _guard(self, other: object, holds: Callable[[int, int], bool]) -> Guard:
        if type(other) is not int:
            raise _error()
        return Guard(sum(holds(index, other) for index in range(self._count)), self._count)

    def __getattr__(self, name: str) -> NoReturn:
        raise _error()

    def _error_of(self, *_: object) -> NoReturn:
        raise _error()

    __bool__ = __index__ = __int__ = __float__ = __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _error_of
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __truediv__ = __rtruediv__ = __and__ = __rand__ = _error_of
    __or__ = __ror__ = __xor__ = __rxor__ = __lshift__ = __rlshift__ = __rshift__ = __rrshift__ = __neg__ = _error_of


def _error() -> TileError:
    return fail("T.get_thread_binding: the index of a thread can only be compared with constants, in the condition of an `if`",
                "a core has no threads: compute the elements of a tile in T.Parallel", "T190")


def _enter(name: str) -> None:
    def call(self: Thread, other: object) -> Guard:
        return self._guard(other, getattr(operator, name))

    setattr(Thread, f"__{name}__", call)


for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    _enter(_name)


@known("get_thread_binding")
def get_thread_binding(dim: int = 0) -> Thread | int:
    """Returns the index of a thread (``T.get_thread_binding``); 0 for the only one of an axis."""
    threads = current().threads
    if not 0 <= dim < len(threads):
        raise _error()
    return Thread(threads[dim]) if threads[dim] > 1 else 0


@known("get_thread_bindings")
def get_thread_bindings() -> list[Thread | int]:
    """Returns the index of a thread along each axis (``T.get_thread_bindings``)."""
    return [get_thread_binding(dim) for dim in range(len(current().threads))]
