"""How data decide what a device function does, in a form that needs no IR."""

from __future__ import annotations

from dataclasses import dataclass

from tilelang_npu.errors import Location


@dataclass(frozen=True)
class Use:
    """A place where behaviour depends on data.

    Attributes:
        what: ``branch``, ``trips``, ``place``, ``flag``, or ``extent`` for a number that an op takes.
        location: the kernel's line.
        number: for a branch, its key in :attr:`Witness.ways`.
    """

    what: str
    location: Location | None
    number: int = -1


@dataclass(frozen=True)
class UsedData:
    """The data-dependent behaviour of a function.

    Attributes:
        uses: what depends on data, in program order, each once.
        compared: constants that are compared or computed with numbers from memory.
    """

    uses: tuple[Use, ...]
    compared: tuple[int, ...]
