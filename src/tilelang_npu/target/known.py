"""The registry of chips by name, and facts about memories and about HIVM's ops that are derived from all registered chips."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache, lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Literal, get_args

from tilelang_npu.errors import TileError
from tilelang_npu.plugin_loading import load_plugins
from tilelang_npu.target import a2, a3, a5, chip_file
from tilelang_npu.target.chip_data import GM, UNPICKLED, BufferSpace, Chip, CoreKind, Features, Memory, Pipe, Space

_FAMILIES = (a2, a3, a5)
DEFAULT = a2.USUAL.name
"""The name of the default chip, for kernels that name none."""
_USUAL = {family.USUAL.family: family.USUAL for family in _FAMILIES}
# AscendNPU-IR: isRegBasedArch is true, isAscend950 is not (HACC/Utils/Utils.cpp).
_310B = replace(a5.FEATURES, vector_modes=False, fixpipe_columns=False, fixpipe_channel_split=False)
_UNPUBLISHED = {"310b": "of the Ascend310B only the memories are published (AscendNPU-IR: UB 256 KiB, L1 1 MiB, L0A and L0B 64"
                        " KiB, L0C 128 KiB), and no clock, rate or latency from which times could be modelled"}
"""Notes for the error about an unknown chip, by the beginning of the chip's name: why this package cannot model that chip."""
_CHIPS: dict[str, Chip] = {}
_BY_KEY: dict[str, Chip] = {}
_TARGETS: dict[str, tuple[str, Features]] = {}
"""The family and the features of each target that AscendNPU-IR knows, by the key (:func:`_key`) of the target's name."""


def _key(name: str) -> str:
    """Returns the key under which a chip's name is looked up: the name in lower case, without the prefix ``Ascend``, and with
    underscores in place of hyphens and spaces.
    """
    return name.strip().lower().replace("-", "_").replace(" ", "_").removeprefix("ascend").lstrip("_")


def _missing_features(chip: Chip) -> list[str]:
    """Returns the names of the features that a chip has and the target in its ``hivm_target`` lacks; empty if AscendNPU-IR does
    not know that target."""
    key = _key(chip.hivm_target)
    return _TARGETS[key][1].lacks(chip.features) if key in _TARGETS else []


def register(*chips: Chip) -> None:
    """Registers chips under their names, target names and aliases. A chip replaces the registered chip of the same name. The
    first chip of a new family becomes the family's default chip.

    Raises:
        TileError: T713, a chip has features that the target in its ``hivm_target`` lacks, or the number of its Vector cores is
            no multiple of the number of its Cube cores.
    """
    for one in chips:
        if missing := _missing_features(one):
            raise TileError(f"{one.name} has {', '.join(missing)}, which its HIVM target {one.hivm_target} lacks", code="T713",
                            help="set hivm_target to a target that has these features, or to the chip's own name")
        if one.aiv % one.aic:
            raise TileError(f"{one.name} has {one.aiv} Vector cores for {one.aic} Cube cores: aiv must be a multiple of aic",
                            code="T713", help=f"give aiv a multiple of aic, such as {one.aic} or {2 * one.aic}")
    for one in chips:
        _CHIPS[one.name] = one
        _BY_KEY[_key(one.name)] = one
        for spelling in (one.target_name, *one.aliases):
            known = _BY_KEY.get(_key(spelling))
            if known is None or known.file or not one.file:  # a file takes no name from a chip of this package
                _BY_KEY[_key(spelling)] = one
        usual = _USUAL.get(one.family)
        if usual is None or usual.name == one.name:
            _USUAL[one.family] = one
    for derived in (_memories, _filled, pipes_of):
        derived.cache_clear()


def unregister(one: Chip) -> None:
    """Removes a chip and its names from the registry, except for names under which a later chip was registered."""
    if _CHIPS.get(one.name) is one:
        del _CHIPS[one.name]
    for spelling in [spelling for spelling, known in _BY_KEY.items() if known is one]:
        del _BY_KEY[spelling]
    for derived in (_memories, _filled, pipes_of):
        derived.cache_clear()


def chips() -> tuple[Chip, ...]:
    """Returns all registered chips in the order of registration: those of this package first, family by family."""
    return tuple(_CHIPS.values())


@lru_cache(maxsize=64)
def _described(path: Path, resolved: Path, changed: float) -> tuple[Chip, ...]:
    """Returns the chips that a file describes; the result is cached until the file's path or modification time changes.

    Args:
        path: the file.
        resolved: the absolute path of the file, a part of the cache key.
        changed: the modification time of the file, a part of the cache key.

    Raises:
        TileError: T713, the file is wrong, or one of its chips has the name of a chip of this package.
    """
    made = chip_file.load(path, chip, _missing_features)
    for one in made:
        known = _BY_KEY.get(_key(one.name))
        if known is not None and not known.file:
            raise TileError(f"{path}: the name {one.name} is taken by a chip of this package", code="T713",
                            help="give the chip another name")
    return made


def _found(key: str) -> Chip | None:
    """Returns the registered chip with a key, or None. If none is known, chips that this process received through pickle are
    registered first."""
    found = _BY_KEY.get(key)
    if found is None and UNPICKLED:
        register(*UNPICKLED.values())
        UNPICKLED.clear()
        found = _BY_KEY.get(key)
    return found


def chip(name: str | Path | Chip) -> Chip:
    """Returns the chip with a name, or the default chip of a file.

    Args:
        name: the chip's name, alias or target; the prefix ``Ascend`` and the case do not matter, so ``910b2`` is
            ``Ascend910B2``. A name that ends in ``.toml`` or ``.py`` is the path of a file that describes chips
            (docs/hardware.md#chips-of-your-own): all of them are registered, and the default one is returned. A ``Chip`` is
            returned as it is.

    Raises:
        TileError: T701, no chip has the name; the notes list the registered names. T713, the file is wrong.
    """
    if isinstance(name, Chip):
        return name
    if chip_file.is_file(name):
        path = Path(name)
        made = _described(path, path.resolve(), path.stat().st_mtime if path.exists() else 0.0)
        register(*made)  # in each call: another file may have registered a name in the meantime
        return made[0]
    found = _found(_key(str(name)))
    if found is None and load_plugins():
        found = _BY_KEY.get(_key(str(name)))
    if found is None:
        known = [one.name for one in chips() if not one.file]
        why = tuple(note for start, note in _UNPUBLISHED.items() if _key(str(name)).startswith(start))
        raise TileError(f"unknown chip {name!r}", code="T701", notes=(*why, "known are " + ", ".join(known)),
                        help="give one of these names (the prefix may be left out, as in 910B2), or the path of a TOML file"
                             " with the figures of another chip (docs/hardware.md#chips-of-your-own)")
    return found


def usual(family: str) -> Chip | None:
    """Returns the default chip of a family such as ``A2``; None for an unknown family."""
    return _USUAL.get(family)


def families() -> tuple[str, ...]:
    """Returns the names of the families of all registered chips, in the order of registration."""
    return tuple(_USUAL)


def family_of(device: str) -> str | None:
    """Returns the family of a device from the name that the driver reports, such as ``Ascend910B`` or ``Ascend910_9392``.

    This is the family of the chip with that name, or otherwise the family of the chips whose names begin with it. Returns None
    if there are no such chips, or if they belong to several families.
    """
    families_of = {key: family for key, (family, _) in _TARGETS.items()} | {key: one.family for key, one in _BY_KEY.items()}
    key = _key(device)
    named = {family for name, family in families_of.items() if name == key} or {
        family for name, family in families_of.items() if key and name.startswith(key)}
    return named.pop() if len(named) == 1 else None


def features_of(target: str) -> Features:
    """Returns the features of the chip or target that a module's ``hacc.target`` names; for an unknown or empty name those of
    A2, which is AscendNPU-IR's rule."""
    key = _key(target)
    found = _found(key)
    if found is not None:
        return found.features
    return _TARGETS[key][1] if key in _TARGETS else a2.FEATURES


def memory(space: BufferSpace) -> Memory | None:
    """Returns the description of an on-chip memory in the first registered chip that has the memory; None for GM and for an
    unknown name. Among all chips only the sizes of a memory differ.

    Args:
        space: HIVM's address space of the memory, such as ``cbuf``.
    """
    rows: dict[BufferSpace, Memory] = _memories()
    return rows.get(space)


@cache
def _memories() -> dict[BufferSpace, Memory]:
    """Returns the on-chip memories of all chips by HIVM address space, each as the first chip that has it describes it."""
    found: dict[BufferSpace, Memory] = {}
    for one in chips():
        for space, row in one.memory.items():
            found.setdefault(space, row)
    return found


def memories(core: CoreKind | None = None) -> tuple[Space, ...]:
    """Returns the HIVM address spaces of the on-chip memories of all chips.

    Args:
        core: ``AIC`` or ``AIV`` for the memories of that kind of core only; None for all.
    """
    found = dict.fromkeys(name for one in chips() for name in one.memory)
    return tuple(name for name in found if core in (None, _memories()[name].core))


def filled_from(source: Space) -> frozenset[Space]:
    """Returns the on-chip memories into which, on some registered chip, an op of HIVM moves data from memory ``source``."""
    targets: Mapping[Space, frozenset[Space]] = _filled()
    return targets[source]


@cache
def _filled() -> Mapping[Space, frozenset[Space]]:
    """Returns, for each memory, the on-chip memories into which an op of HIVM moves data from the memory on some chip."""
    paths = [path for one in chips() for path in one.paths.values() if path.ops and path.target != GM]
    return {source: frozenset(path.target for path in paths if path.source == source) for source in get_args(Space)}


@cache
def pipes_of(op: str) -> Mapping[tuple[Space, Space], Pipe]:
    """Returns the pipe on which an op of HIVM moves data, by (source, target) address space; pairs of memories that the op
    connects on no registered chip are absent."""
    return MappingProxyType({(path.source, path.target): path.pipe
                             for one in chips() for path in one.paths.values() if op in path.ops})


def name_of(space: BufferSpace) -> str:
    """Returns the common name of a memory: ``L1`` for address space ``cbuf``. A buffer scope that is not assigned to a memory
    yet is returned unchanged."""
    row = memory(space)
    return row.common_name if row is not None else space.upper() if space == GM else space


def core_of(space: BufferSpace) -> CoreKind | Literal[""]:
    """Returns the kind of core that has a memory, ``AIC`` or ``AIV``; an empty string for GM, and for a buffer scope that is
    not assigned to a memory yet."""
    row = memory(space)
    return row.core if row is not None else ""


def is_fractal(space: BufferSpace) -> bool:
    """Whether the memory with this address space holds matrices in fractal layout instead of row by row."""
    row = memory(space)
    return row is not None and row.fractal


_TARGETS.update({_key(name): (family.USUAL.family, family.USUAL.features) for family in _FAMILIES for name in family.TARGETS})
_TARGETS.update({_key(f"Ascend310B{number}"): ("310B", _310B) for number in (1, 2, 3, 4)})
register(*(one for family in _FAMILIES for one in family.CHIPS))
BLOCK = a2.MEMORY["ub"].block
"""Bytes of a block of UB: the granularity and the alignment of data movements and of vector instructions."""
