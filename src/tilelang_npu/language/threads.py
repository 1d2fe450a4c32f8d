"""``T.get_thread_binding``: the index of a GPU's thread, which only the condition of an ``if`` can compare with constants.

A core has no threads. What the threads of a GPU's block do together, a core does once. So a branch for some of the threads,
such as ``if T.get_thread_binding() == 0:`` or ``if tx < 32:``, is executed once if there are such threads, and the ``else``
part once if there are others. All other uses of a thread index are refused, because each thread would have another value.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from tilelang_npu.errors import TileError, shown
from tilelang_npu.traced.builder import Builder

_ADVICE = "a core has no threads: compute the elements of a tile in T.Parallel, and use the index in no expression"


def _refuse(what: str) -> NoReturn:
    raise TileError(f"T.get_thread_binding: the index of a thread cannot be {what}", code="T190", help=_ADVICE)


def _refused(what: str) -> Callable[..., NoReturn]:
    def use(self: object, *_: object) -> NoReturn:
        _refuse(what)

    return use


class ThreadGuard:
    """A condition on the index of a thread, the test of an ``if``.

    Attributes:
        chosen: the number of threads for which the condition holds.
        others: the number of threads for which it does not hold.
    """

    def __init__(self, chosen: int, others: int) -> None:
        self.chosen, self.others = chosen, others

    def __bool__(self) -> bool:
        _refuse("in a part of a condition, or in a ternary expression; only the whole condition of an `if` can compare it, and"
                " the first part of one with `and`")


class ThreadIndex:
    """The index of a thread along an axis of a block of a GPU.

    Attributes:
        count: the number of threads along the axis.
    """

    def __init__(self, count: int) -> None:
        self.count = count

    __hash__ = object.__hash__

    def describe(self) -> str:
        """Returns a description of the value, for error messages."""
        return "the index of a thread"

    def _compare(self, other: object, holds: Callable[[int, int], bool]) -> ThreadGuard:
        if isinstance(other, bool) or not isinstance(other, int):
            _refuse(f"compared with {shown(other)}, which is not a constant integer")
        chosen = sum(holds(index, other) for index in range(self.count))
        return ThreadGuard(chosen, self.count - chosen)

    def __eq__(self, other: object) -> Any:
        return self._compare(other, lambda index, value: index == value)

    def __ne__(self, other: object) -> Any:
        return self._compare(other, lambda index, value: index != value)

    def __lt__(self, other: object) -> ThreadGuard:
        return self._compare(other, lambda index, value: index < value)

    def __le__(self, other: object) -> ThreadGuard:
        return self._compare(other, lambda index, value: index <= value)

    def __gt__(self, other: object) -> ThreadGuard:
        return self._compare(other, lambda index, value: index > value)

    def __ge__(self, other: object) -> ThreadGuard:
        return self._compare(other, lambda index, value: index >= value)

    __bool__ = _refused("a condition by itself")
    __index__ = __int__ = __float__ = _refused("used as a number")
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _refused("used in arithmetic")
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __truediv__ = __rtruediv__ = _refused("used in arithmetic")
    __and__ = __rand__ = __or__ = __ror__ = __xor__ = __rxor__ = _refused("used in arithmetic")
    __lshift__ = __rlshift__ = __rshift__ = __rrshift__ = __neg__ = __invert__ = __abs__ = _refused("used in arithmetic")


def get_thread_binding(dim: int = 0) -> ThreadIndex | int:
    """Return the index of a GPU's thread, which can be compared with constants in the condition of an ``if``.

    A core has no threads. The body of ``if T.get_thread_binding() == 0:`` or ``if tx < 32:`` is executed once for each block if
    there are such threads, and the ``else`` part once if there are others. The index of the only thread of an axis is 0.

    Example: ``T.get_thread_binding()``

    Args:
        dim: the axis of ``threads=`` of ``T.Kernel``.

    Raises:
        TileError: T160, the call is outside of ``T.Kernel``; T190, the launch has no such axis, or is for an NPU; or the index
            is used in any other way.
    """
    what = "T.get_thread_binding"
    builder = Builder.running(what)
    builder.require_kernel(what)
    threads = builder.threads
    if isinstance(dim, bool) or not isinstance(dim, int) or not 0 <= dim < len(threads):
        raise TileError(f"{what}: this launch has no threads along axis {shown(dim)}", code="T190", help=_ADVICE)
    return ThreadIndex(threads[dim]) if threads[dim] > 1 else 0


def get_thread_bindings() -> list[ThreadIndex | int]:
    """Return the index of a GPU's thread along each axis of its block; see ``T.get_thread_binding``.

    Example: ``T.get_thread_bindings()``

    Raises:
        TileError: as ``T.get_thread_binding``.
    """
    return [get_thread_binding(dim) for dim in range(len(Builder.running("T.get_thread_bindings").threads))]


__all__ = ["ThreadGuard", "ThreadIndex", "get_thread_binding", "get_thread_bindings"]
