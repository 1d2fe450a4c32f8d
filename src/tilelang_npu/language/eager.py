"""``T.const`` and ``T.empty``: what the host part of a function under ``jit`` declares: sizes of its arguments, and new
tensors.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from tilelang_npu.errors import TileError
from tilelang_npu.language.elements import ElementType, Extents
from tilelang_npu.traced.author import user_location

_STAND_IN = 2**10 * 3**2 * 5 * 7
"""The number that stands for an unknown size: most divisors of sizes divide it."""


@dataclass(frozen=True)
class _KnownValues:
    """The sizes that are known by name, and whether an unknown one gets a stand-in or is an error."""

    sizes: Mapping[str, int]
    looking: bool
    asked: list[str] = field(default_factory=list)


_KNOWN: ContextVar[_KnownValues | None] = ContextVar("tilelang_npu_sizes", default=None)


class Size(int):
    """The number that stands for the unknown size ``name``."""

    name: str

    def __new__(cls, name: str) -> Size:
        made = super().__new__(cls, _STAND_IN)
        made.name = name
        return made


class Empty:
    """A tensor that a call allocates, and returns where the function returns it.

    Attributes:
        shape: its sizes.
        dtype: its element type.
    """

    __slots__ = ("dtype", "shape")

    def __init__(self, shape: tuple[object, ...], dtype: object) -> None:
        self.shape, self.dtype = shape, dtype

    def __repr__(self) -> str:
        return f"T.empty({self.shape}, {str(self.dtype)!r})"


@contextmanager
def known(sizes: Mapping[str, int], *, looking: bool = False) -> Iterator[list[str]]:
    """Gives :func:`const` these sizes; with ``looking`` other names get stand-ins, and the list that is yielded collects them.
    """
    found = _KnownValues(sizes, looking)
    token = _KNOWN.set(found)
    try:
        yield found.asked
    finally:
        _KNOWN.reset(token)


def is_declaring() -> bool:
    """Whether the host part of a function under ``jit`` is running."""
    return _KNOWN.get() is not None


def const(name: str, dtype: str = "int32") -> Any:  # an int or a tuple: type checkers would not unpack the union
    """Return sizes of the arguments as numbers: ``M, N = T.const("M, N")``, with ``A: T.Tensor((M, N), dtype)`` below it.

    Example: ``T.const("M, N")``

    Args:
        name: one name, or several separated by commas or spaces.
        dtype: accepted; the numbers are Python integers.

    Returns:
        a number, or a tuple of them.

    Raises:
        TileError: T160, outside of a function under ``jit`` that contains ``with T.Kernel`` itself; T151, no argument and no
            keyword of ``compile`` determines the size.
    """
    found = _KNOWN.get()
    if found is None:
        raise TileError("T.const is only usable in a function under @tilelang.jit that holds `with T.Kernel` itself",
                        code="T160", location=user_location(), help="make the size a parameter of the factory")
    names = name.replace(",", " ").split()
    for each in names:
        if each not in found.sizes and not found.looking:
            raise TileError(f"T.const: no tensor that was given has {each!r} as a size of its own", code="T151",
                            location=user_location(),
                            help=f"declare one with it, as in A: T.Tensor(({each},), dtype), or compile({each}=...)")
    found.asked.extend(each for each in names if each not in found.sizes)
    made = tuple(found.sizes[each] if each in found.sizes else Size(each) for each in names)
    return made[0] if len(made) == 1 else made


def empty(*shape: Extents | ElementType, dtype: ElementType = "float32") -> Any:  # a buffer in the kernel
    """Allocate a tensor that the call returns: ``C = T.empty((M, N), dtype)`` above ``with T.Kernel``, ``return C`` below it.

    Example: ``T.empty((M, N), "float16")``

    Raises:
        TileError: T160, outside of a function under ``jit`` that contains ``with T.Kernel`` itself.
    """
    if _KNOWN.get() is None:
        raise TileError("T.empty is only usable in a function under @tilelang.jit, above its `with T.Kernel`", code="T160",
                        location=user_location(), help="make the tensor a parameter, and name it in out_idx")
    if len(shape) == 2 and isinstance(shape[0], (tuple, list)):
        return Empty(tuple(shape[0]), shape[1])
    if len(shape) == 1 and isinstance(shape[0], (tuple, list)):
        return Empty(tuple(shape[0]), dtype)
    return Empty(shape, dtype)
