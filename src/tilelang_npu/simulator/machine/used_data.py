"""What depends on data in a device function, as it is told without its IR."""

from __future__ import annotations

from dataclasses import dataclass

from tilelang_npu.errors import Location


@dataclass(frozen=True)
class Use:
    """Something that depends on data.

    Attributes:
        what: ``branch``, ``trips``, ``place``, ``flag``, or ``extent`` for a number that an op takes.
        location: the kernel's line.
        number: of a branch its key in :attr:`Witness.ways`.
    """

    what: str
    location: Location | None
    number: int = -1


@dataclass(frozen=True)
class UsedData:
    """What data decide.

    Attributes:
        uses: what depends on data, in program order, each once.
        compared: constants that numbers from memory meet in arithmetic and comparisons.
    """

    uses: tuple[Use, ...]
    compared: tuple[int, ...]
