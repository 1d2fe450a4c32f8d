"""``T.const`` and ``T.empty``: declare sizes of the arguments, and new tensors, in an eager function under ``jit``.

The host part of an eager function is the statements above its ``with T.Kernel``.
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
"""The number that is assumed for an unknown size: most divisors of sizes divide it."""


@dataclass(frozen=True)
class _KnownValues:
    """The sizes that are known by name, and whether an unknown one gets a stand-in or is an error."""

    sizes: Mapping[str, int]
    looking: bool
    asked: list[str] = field(default_factory=list)


_KNOWN: ContextVar[_KnownValues | None] = ContextVar("tilelang_npu_sizes", default=None)


class Size(int):
    """An integer in place of the size ``name`` as long as its value is not known; all such sizes have the same value."""

    name: str

    def __new__(cls, name: str) -> Size:
        made = super().__new__(cls, _STAND_IN)
        made.name = name
        return made


class Empty:
    """The declaration of a tensor that a call allocates, and returns if the function returns the tensor.

    Attributes:
        shape: the sizes of the tensor.
        dtype: the element type of the tensor.
    """

    __slots__ = ("dtype", "shape")

    def __init__(self, shape: tuple[object, ...], dtype: object) -> None:
        self.shape, self.dtype = shape, dtype

    def __repr__(self) -> str:
        return f"T.empty({self.shape}, {str(self.dtype)!r})"


@contextmanager
def known(sizes: Mapping[str, int], *, looking: bool = False) -> Iterator[list[str]]:
    """Sets the sizes that :func:`const` returns inside the ``with`` statement.

    Args:
        sizes: the sizes by name.
        looking: whether :func:`const` returns a stand-in (:class:`Size`) for a name that is not in ``sizes``, instead of
            raising an error.

    Yields:
        A list to which the names that are not in ``sizes`` are appended when :func:`const` is called with them.
    """
    found = _KnownValues(sizes, looking)
    token = _KNOWN.set(found)
    try:
        yield found.asked
    finally:
        _KNOWN.reset(token)


def is_declaring() -> bool:
    """Whether the host part of an eager function (the statements above ``with T.Kernel``) is running."""
    return _KNOWN.get() is not None


def const(name: str, dtype: str = "int32") -> Any:  # an int or a tuple: type checkers would not unpack the union
    """Return sizes of the tensor arguments as integers: ``M, N = T.const("M, N")``.

    A declaration below the call, such as ``A: T.Tensor((M, N), dtype)``, says which axes of which argument have these sizes.

    Example: ``T.const("M, N")``

    Args:
        name: one name, or several names separated by commas or spaces.
        dtype: accepted, and has no effect: the results are Python integers.

    Returns:
        An integer, or a tuple of integers for several names.

    Raises:
        TileError: T160, the call is outside of a function under ``jit`` that contains ``with T.Kernel`` itself; T151, no
            tensor argument and no keyword of ``compile`` determines the size.
    """
    found = _KNOWN.get()
    if found is None:
        raise TileError("T.const is only usable in a function under @tilelang.jit that holds `with T.Kernel` itself",
                        code="T160", location=user_location(), help="make the size a parameter of the factory")
    names = name.replace(",", " ").split()
    for each in names:
        if each not in found.sizes and not found.looking:
            raise TileError(f"T.const: no tensor argument has an axis whose size is {each!r}", code="T151",
                            location=user_location(),
                            help=f"declare a parameter with this size, as in A: T.Tensor(({each},), dtype), or call "
                                 f"compile({each}=...)")
    found.asked.extend(each for each in names if each not in found.sizes)
    made = tuple(found.sizes[each] if each in found.sizes else Size(each) for each in names)
    return made[0] if len(made) == 1 else made


def empty(*shape: Extents | ElementType, dtype: ElementType = "float32") -> Any:  # a buffer in the kernel
    """Allocate a tensor for a result: ``C = T.empty((M, N), dtype)`` above ``with T.Kernel``, and ``return C`` below it.

    Example: ``T.empty((M, N), "float16")``

    Args:
        shape: the sizes, as one tuple or as separate arguments; the element type can follow a tuple.
        dtype: the element type.

    Raises:
        TileError: T160, the call is outside of a function under ``jit`` that contains ``with T.Kernel`` itself.
    """
    if _KNOWN.get() is None:
        raise TileError("T.empty is only usable in a function under @tilelang.jit, above its `with T.Kernel`", code="T160",
                        location=user_location(), help="make the tensor a parameter, and name it in out_idx")
    if len(shape) == 2 and isinstance(shape[0], (tuple, list)):
        return Empty(tuple(shape[0]), shape[1])
    if len(shape) == 1 and isinstance(shape[0], (tuple, list)):
        return Empty(tuple(shape[0]), dtype)
    return Empty(shape, dtype)
