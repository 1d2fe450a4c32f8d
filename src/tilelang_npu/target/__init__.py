"""Chips as data: cores, clocks, memories, alignments, rates, each with its source."""

from __future__ import annotations

from tilelang_npu.errors import TileError
from tilelang_npu.target import a2, a3, a5
from tilelang_npu.target.chip import (
    SPOKEN,
    Banks,
    Chip,
    Cube,
    Launch,
    Memory,
    Move,
    Path,
    Scalar,
    Sync,
    Traffic,
    Unit,
    VectorRate,
)

_CHIPS = {chip.name: chip for chip in (*a2.CHIPS, *a3.CHIPS, *a5.CHIPS)}


def _key(name: str) -> str:
    """The spelling that lookups compare: lower case, no prefix, underscores for hyphens and spaces."""
    return name.strip().lower().replace("-", "_").replace(" ", "_").removeprefix("ascend").lstrip("_")


_BY_KEY = {_key(spelling): chip for chip in _CHIPS.values() for spelling in (chip.name, chip.hivm_target, *chip.aliases)}


def chips() -> tuple[Chip, ...]:
    """Every chip that is described, in the order of families."""
    return tuple(_CHIPS.values())


def chip(name: str | Chip) -> Chip:
    """The chip of that name; prefix and case do not matter, so ``910b2`` is ``Ascend910B2``.

    Raises:
        TileError: T701, no chip has that name; the known ones are listed.
    """
    if isinstance(name, Chip):
        return name
    found = _BY_KEY.get(_key(name))
    if found is None:
        raise TileError(f"unknown chip {name!r}", code="T701", notes=("known are " + ", ".join(_CHIPS),),
                        help="give one of these names; the prefix may be left out, as in 910B2")
    return found


__all__ = ["SPOKEN", "Banks", "Chip", "Cube", "Launch", "Memory", "Move", "Path", "Scalar", "Sync", "Traffic", "Unit",
           "VectorRate", "chip", "chips"]
