"""The registry of chips by name, and properties of memories and of HIVM's ops that follow from the rows of all chips."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from tilelang_npu.errors import TileError
from tilelang_npu.target import a2, a3, a5, chip_file
from tilelang_npu.target.chip_data import GM, Chip, CoreKind, Memory, Pipe

_FAMILIES = (a2, a3, a5)
DEFAULT = a2.USUAL.name
"""The default chip."""
_USUAL = {family.USUAL.family: family.USUAL for family in _FAMILIES}
_UNPUBLISHED = {"310b": "of the Ascend310B only the memories are published (AscendNPU-IR: UB 256 KiB, L1 1 MiB, L0A and L0B 64"
                        " KiB, L0C 128 KiB), and no clock, rate or latency from which times could be modelled"}
"""Notes on chips without a table, by the beginning of their names."""
_CHIPS: dict[str, Chip] = {}
_BY_KEY: dict[str, Chip] = {}


def _key(name: str) -> str:
    """The key of a name in lookups: lower case, without the prefix, with underscores for hyphens and spaces."""
    return name.strip().lower().replace("-", "_").replace(" ", "_").removeprefix("ascend").lstrip("_")


def register(*chips: Chip) -> None:
    """Registers chips under their names; a chip with a registered name replaces the earlier one."""
    for one in chips:
        _CHIPS[one.name] = one
        spellings = (one.name,) if one.file else (one.name, one.hivm_target, *one.aliases)
        _BY_KEY.update({_key(spelling): one for spelling in spellings})
    for derived in (memory, memories, filled_from, pipes_of):
        derived.cache_clear()


def chips() -> tuple[Chip, ...]:
    """All registered chips, in the order of families."""
    return tuple(_CHIPS.values())


@lru_cache(maxsize=64)
def _described(path: Path, resolved: Path, changed: float) -> Chip:
    """Loads and registers the chip of a file; the arguments are the cache key, so that a changed file is loaded again."""
    made = chip_file.load(path, chip)
    known = _BY_KEY.get(_key(made.name))
    if known is not None and not known.file:
        raise TileError(f"{path}: the name {made.name} is taken by a chip of this package", code="T713",
                        help="give another name")
    register(made)
    return made


def chip(name: str | Path | Chip) -> Chip:
    """The chip with a name; prefix and case do not matter, so ``910b2`` is ``Ascend910B2``. A name that ends in ``.toml`` is
    the path of a file that describes a chip (docs/hardware.md#chips-of-your-own).

    Raises:
        TileError: T701, no chip has the name; the message lists the registered ones. T713, the file is wrong.
    """
    if isinstance(name, Chip):
        return name
    if chip_file.is_file(name):
        path = Path(name)
        made = _described(path, path.resolve(), path.stat().st_mtime if path.exists() else 0.0)
        register(made)  # another file may have registered the name in the meantime
        return made
    found = _BY_KEY.get(_key(str(name)))
    if found is None:
        known = [one.name for one in chips() if not one.file]
        why = tuple(note for start, note in _UNPUBLISHED.items() if _key(str(name)).startswith(start))
        raise TileError(f"unknown chip {name!r}", code="T701", notes=(*why, "known are " + ", ".join(known)),
                        help="give one of these names (the prefix may be left out, as in 910B2), or the path of a TOML file"
                             " with the figures of another chip (docs/hardware.md#chips-of-your-own)")
    return found


def usual(family: str) -> Chip | None:
    """The default chip of a family; None for an unknown family."""
    return _USUAL.get(family)


@cache
def memory(space: str) -> Memory | None:
    """The row of a memory in the first chip that has it, of which all chips share all but the size; None for GM."""
    return next((one.memory[space] for one in chips() if space in one.memory), None)


@cache
def memories(core: str = "") -> tuple[str, ...]:
    """The on-chip memories of all chips, or of a kind of core of all chips."""
    found = dict.fromkeys(name for one in chips() for name in one.memory)
    return tuple(name for name in found if (row := memory(name)) is not None and core in ("", row.core))


@cache
def filled_from(source: str) -> frozenset[str]:
    """The on-chip memories into which ops of HIVM move data from a memory."""
    return frozenset(path.target for one in chips() for path in one.paths.values() if path.ops and path.source == source) - {GM}


@cache
def pipes_of(op: str) -> Mapping[tuple[str, str], Pipe]:
    """The pipe of an op of HIVM by source and target memory; pairs that the op connects on no chip are absent."""
    return MappingProxyType({(path.source, path.target): path.pipe
                             for one in chips() for path in one.paths.values() if op in path.ops})


def name_of(space: str) -> str:
    """The common name of a memory: ``L1`` for ``cbuf``. A scope whose memory is not chosen yet is returned as it is."""
    row = memory(space)
    return row.common_name if row is not None else space.upper() if space == GM else space


def core_of(space: str) -> CoreKind | Literal[""]:
    """The kind of core that has a memory, ``AIC`` or ``AIV``; empty for GM, and for a scope whose memory is not chosen yet."""
    row = memory(space)
    return row.core if row is not None else ""


def is_fractal(space: str) -> bool:
    """Whether a memory holds matrices in fractal layout."""
    row = memory(space)
    return row is not None and row.fractal


register(*(one for family in _FAMILIES for one in family.CHIPS))
BLOCK = a2.MEMORY["ub"].block
"""Bytes of a block: the granularity and the alignment of moves and of vector instructions."""
