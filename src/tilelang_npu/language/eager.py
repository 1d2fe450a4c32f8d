"""What a function under ``jit`` declares in its own body: sizes that its arguments have, and tensors that it makes."""

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
"""What stands for a size that is looked for: what divides sizes mostly divides it."""


@dataclass(frozen=True)
class _KnownValues:
    """Sizes by name; others are looked for, or an error."""

    sizes: Mapping[str, int]
    looking: bool
    asked: list[str] = field(default_factory=list)


_KNOWN: ContextVar[_KnownValues | None] = ContextVar("tilelang_npu_sizes", default=None)


class Size(int):
    """A number that stands for a size of this name."""

    name: str

    def __new__(cls, name: str) -> Size:
        made = super().__new__(cls, _STAND_IN)
        made.name = name
        return made


class Empty:
    """A tensor that a call makes, and returns where the function does.

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
    """Give :func:`const` these sizes, and a stand-in for others that are looked for; yields the names of those."""
    found = _KnownValues(sizes, looking)
    token = _KNOWN.set(found)
    try:
        yield found.asked
    finally:
        _KNOWN.reset(token)


def is_declaring() -> bool:
    """Whether the host part of a function under ``jit`` runs, which declares tensors."""
    return _KNOWN.get() is not None


def const(name: str, dtype: str = "int32") -> Any:  # one or several, as the text says: a union would not unpack
    """Sizes of the arguments, as numbers: ``M, N = T.const("M, N")``, with ``A: T.Tensor((M, N), dtype)`` below it.

    Example: ``T.const("M, N")``

    Args:
        name: one name, or several between commas or spaces.
        dtype: of the numbers; Python's own are used.

    Returns:
        a number, or a tuple of them.

    Raises:
        TileError: T160, outside of a function under ``jit`` that has its ``with T.Kernel`` itself; T151, no argument and no
            keyword of ``compile`` tells the size.
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


def empty(*shape: Extents | ElementType, dtype: ElementType = "float32") -> Any:  # to its kernel, a buffer
    """A tensor that a call makes: ``C = T.empty((M, N), dtype)`` above ``with T.Kernel``, and ``return C`` below it.

    Example: ``T.empty((M, N), "float16")``

    Raises:
        TileError: T160, as for :func:`const`.
    """
    if _KNOWN.get() is None:
        raise TileError("T.empty is only usable in a function under @tilelang.jit, above its `with T.Kernel`", code="T160",
                        location=user_location(), help="make the tensor a parameter, and name it in out_idx")
    if len(shape) == 2 and isinstance(shape[0], (tuple, list)):
        return Empty(tuple(shape[0]), shape[1])
    if len(shape) == 1 and isinstance(shape[0], (tuple, list)):
        return Empty(tuple(shape[0]), dtype)
    return Empty(shape, dtype)
