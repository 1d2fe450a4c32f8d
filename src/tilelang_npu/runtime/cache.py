"""Compiled kernels, kept in memory and on disk.

An entry's key is a digest of everything that lowering reads: the traced kernel itself (so closure values, globals, macros and
source lines count without anyone listing them), the switches, the dialect, the chip, and the versions of this package and of
xDSL. A kernel whose meaning changed therefore has another key, and an entry is never stale. The price is that a kernel is
traced before its entry is found; what a hit saves is the passes.

An entry on disk is one compressed file, written to a temporary name and renamed, so that two processes never see half of one.
It is signed, see :mod:`tilelang_npu.runtime.cache_authentication`: what this user has not written is not decoded. What cannot
be read is treated as absent and written again.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import zlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from threading import RLock

from tilelang_npu.runtime import cache_authentication, environment
from tilelang_npu.runtime.log import logger
from tilelang_npu.runtime.writing import replaced

__all__ = [
    "clear_cache",
    "digest",
    "disable_cache",
    "enable_cache",
    "get_cache_dir",
    "is_cache_enabled",
    "load",
    "read_entry",
    "set_cache_dir",
    "store",
    "write_entry",
]

_SUFFIX = ".kernel.gz"
KEPT = ".run.z"
"""How the names of kernels end that are kept whole, see :mod:`tilelang_npu.runtime.kept_kernels`."""
_FORMAT = 3
_IN_MEMORY = 256  # entries; the oldest goes first. A large kernel's entry has about 100 KB

Entry = Mapping[str, str]


class _State:
    """What the functions of this module switch."""

    enabled = True
    directory: Path | None = None
    cleared = False
    memory: dict[str, Entry] = {}
    lock = RLock()


def enable_cache() -> None:
    """Read and write the cache on disk again, after :func:`disable_cache`."""
    _State.enabled = True


def disable_cache() -> None:
    """Neither read nor write the cache on disk, for the rest of the process; ``TILELANG_DISABLE_CACHE=1`` does the same."""
    _State.enabled = False


def is_cache_enabled() -> bool:
    """Whether the cache on disk is used."""
    return _State.enabled and not environment.DISABLE_CACHE.is_on()


def set_cache_dir(path: str | os.PathLike[str]) -> None:
    """Keep the entries in this directory from now on."""
    _State.directory = Path(path)


def get_cache_dir() -> Path:
    """The directory of the entries; it need not exist."""
    return _State.directory or environment.cache_directory()


def clear_cache() -> None:
    """Forget every compiled kernel, in memory and on disk. Kernel objects that exist stay usable."""
    with _State.lock:
        _State.memory.clear()
    for file in [*_entries(), *get_cache_dir().glob(".*.part")]:  # a killed process leaves the latter
        with suppress(PermissionError):  # another user's, in a shared directory
            file.unlink(missing_ok=True)


def _entries() -> list[Path]:
    directory = get_cache_dir()
    return sorted(file for suffix in (_SUFFIX, KEPT) for file in directory.glob(f"*{suffix}")) if directory.is_dir() else []


def _name(key: str, suffix: str) -> str:
    """The name of an entry's file. Each user of a shared directory has files of their own."""
    return f"{key}.{cache_authentication.user_tag()}{suffix}"


def read_entry(key: str, suffix: str) -> bytes:
    """The content of an entry that this user has written.

    Args:
        key: of the kernel.
        suffix: the kind of entry.

    Raises:
        FileNotFoundError: there is none.
        OSError: it cannot be read, or this user has no secret.
        ValueError: somebody else has written it, or it was changed.
    """
    name = _name(key, suffix)
    whole, _ = cache_authentication.read_file(get_cache_dir() / name)
    return cache_authentication.unseal(name, whole)


def write_entry(key: str, suffix: str, content: bytes) -> None:
    """Write an entry, which this user alone can read.

    Raises:
        OSError: it cannot be written, or this user has no secret.
    """
    name, directory = _name(key, suffix), get_cache_dir()
    entry = cache_authentication.seal(name, content)
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    with replaced(directory / name, mode=0o600) as file:
        file.write(entry)


def usage() -> tuple[int, int]:
    """How many entries are on disk, and their size in bytes."""
    sizes = [file.stat().st_size for file in _entries()]
    return len(sizes), sum(sizes)


def digest(traced: str, facts: Mapping[str, object]) -> str:
    """The key of a kernel.

    Args:
        traced: text of the traced module, with locations.
        facts: what else decides the result: dialect, chip, switches.
    """
    known = {"versions": versions(), "facts": {name: repr(facts[name]) for name in sorted(facts)}, "traced": traced}
    return hashlib.sha256(json.dumps(known, sort_keys=True).encode()).hexdigest()


@cache
def versions() -> list[str]:
    """Versions of what takes part in lowering. The package counts by its files, so that an edited checkout never hits."""
    package = Path(__file__).resolve().parent.parent
    state = "".join(sorted(_states(str(package), "")))
    from tilelang_npu import __version__

    return [__version__, _version_of_xdsl(), hashlib.sha256(state.encode()).hexdigest(), str(_FORMAT)]


def _version_of_xdsl() -> str:
    """As the directory beside it says, or where there is none, as in a checkout, whoever reads what is in such directories."""
    found = find_spec("xdsl")
    assert found is not None and found.origin is not None, "a package that this one requires"
    with os.scandir(Path(found.origin).parent.parent) as beside:
        names = [entry.name for entry in beside if entry.name.startswith("xdsl-") and entry.name.endswith(".dist-info")]
    if len(names) == 1:
        return names[0].removeprefix("xdsl-").removesuffix(".dist-info")
    from importlib.metadata import version

    return version("xdsl")


def _states(directory: str, name: str) -> Iterator[str]:
    """Each source file below a directory, with the time of its last change and its size."""
    with os.scandir(directory) as found:
        for entry in found:
            if entry.is_dir():
                yield from _states(entry.path, f"{name}{entry.name}/")
            elif entry.name.endswith(".py"):
                known = entry.stat()
                yield f"{name}{entry.name}:{known.st_mtime_ns}:{known.st_size}\n"


def load(key: str) -> Entry | None:
    """The entry of that key, from memory or disk; None where there is none or it cannot be read."""
    if not is_cache_enabled():
        return _State.memory.get(key)
    if environment.CLEAR_CACHE.is_on() and not _State.cleared:
        with _State.lock:  # who comes meanwhile waits, and finds nothing
            if not _State.cleared:
                clear_cache()
                _State.cleared = True
    known = _State.memory.get(key)
    if known is not None:
        return known
    try:
        entry = json.loads(gzip.decompress(read_entry(key, _SUFFIX)))
    except FileNotFoundError:
        return None
    except (OSError, EOFError, zlib.error, ValueError) as error:
        logger.info("cache entry %s cannot be read and is made again: %s", key, error)
        return None
    if not isinstance(entry, dict) or entry.get("key") != key:
        return None
    _remember(key, entry)
    return entry


def _remember(key: str, entry: Entry) -> None:
    with _State.lock:
        _State.memory[key] = entry
        while len(_State.memory) > _IN_MEMORY:
            del _State.memory[next(iter(_State.memory))]


def store(key: str, entry: Entry) -> None:
    """Keep an entry. Where the directory cannot be written it is kept in memory alone."""
    entry = {**entry, "key": key}
    _remember(key, entry)
    if not is_cache_enabled():
        return
    try:
        write_entry(key, _SUFFIX, gzip.compress(json.dumps(entry).encode(), compresslevel=3, mtime=0))
    except OSError as error:
        logger.info("the kernel is not kept on disk: %s", error)
