"""The entries of the kernel cache, in memory and on disk.

The key of an entry is a digest of everything that lowering reads: the traced kernel (which contains the values of its closure,
globals, macros and source lines), the switches, the dialect, the chip, the source of registered plug-ins, and the versions of
this package and of xDSL. A kernel that changed has another key, so an entry is never out of date. A kernel must be traced
before its entry can be found; an entry that is found saves the run of the passes.

An entry on disk is one compressed file. It is written under a temporary name and renamed, so that no process reads a part of an
entry. It is signed, see :mod:`tilelang_npu.runtime.cache.authentication`: a file that this user did not write is not decoded.
An entry that cannot be read is treated as absent, and written again.
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

from tilelang_npu.plugins.registry import plugin_key
from tilelang_npu.runtime.cache import authentication
from tilelang_npu.runtime.settings import environment
from tilelang_npu.runtime.settings.file_writing import replacing
from tilelang_npu.runtime.settings.log import logger

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

LOWERED_TEXT = ".kernel.gz"
"""Suffix of entries with the text of the last stage."""
WHOLE_KERNEL = ".run.z"
"""Suffix of entries with a whole kernel, see :mod:`tilelang_npu.runtime.kernel.stored_kernels`."""
_FORMAT = 4
"""Version of the entries' format. It is part of all keys, so entries of another version are not found."""
_MAX_IN_MEMORY = 256  # entries, of which the oldest is dropped first; the entry of a large kernel has about 100 KB

Entry = Mapping[str, str]


class _State:
    """The state of the cache in this process."""

    enabled = True
    directory: Path | None = None
    cleared = False
    memory: dict[str, Entry] = {}
    lock = RLock()


def enable_cache() -> None:
    """Enables the cache on disk in this process, after :func:`disable_cache`."""
    _State.enabled = True


def disable_cache() -> None:
    """Stops reading and writing the cache on disk in this process, as ``TILELANG_DISABLE_CACHE=1`` does."""
    _State.enabled = False


def is_cache_enabled() -> bool:
    """Whether this process reads and writes the cache on disk."""
    return _State.enabled and not environment.DISABLE_CACHE.is_on()


def set_cache_dir(path: str | os.PathLike[str]) -> None:
    """Sets the directory of the cache on disk for this process, in place of ``TILELANG_CACHE_DIR``."""
    _State.directory = Path(path)


def get_cache_dir() -> Path:
    """Returns the directory of the cache on disk. The directory is created when the first kernel is stored."""
    return _State.directory or environment.cache_directory()


def clear_cache() -> None:
    """Removes all entries of the kernel cache from memory and from disk. Existing kernel objects stay usable."""
    with _State.lock:
        _State.memory.clear()
    for file in [*_files(), *get_cache_dir().glob(".*.part")]:  # a killed process leaves .part files
        with suppress(PermissionError):  # an entry of another user in a shared directory
            file.unlink(missing_ok=True)


def _files() -> list[Path]:
    directory = get_cache_dir()
    if not directory.is_dir():
        return []
    return sorted(file for suffix in (LOWERED_TEXT, WHOLE_KERNEL) for file in directory.glob(f"*{suffix}"))


def _name(key: str, suffix: str) -> str:
    """Returns the name of an entry's file. Each user of a shared directory has files of their own."""
    return f"{key}.{authentication.user_tag()}{suffix}"


def read_entry(key: str, suffix: str) -> bytes:
    """Returns the content of an entry that this user wrote.

    Args:
        key: the key of the kernel.
        suffix: the kind of entry, ``LOWERED_TEXT`` or ``WHOLE_KERNEL``.

    Raises:
        FileNotFoundError: there is no such entry.
        OSError: the file cannot be read, or this user has no secret to check the signature with.
        ValueError: the signature is wrong: another user wrote the entry, or it was changed.
    """
    name = _name(key, suffix)
    whole, _ = authentication.read_file(get_cache_dir() / name)
    return authentication.unseal(name, whole)


def write_entry(key: str, suffix: str, content: bytes) -> None:
    """Writes a signed entry to a file that only this user can read.

    Args:
        key: the key of the kernel.
        suffix: the kind of entry, ``LOWERED_TEXT`` or ``WHOLE_KERNEL``.
        content: the content of the entry.

    Raises:
        OSError: the file cannot be written, or this user has no secret to sign it with.
    """
    name, directory = _name(key, suffix), get_cache_dir()
    entry = authentication.seal(name, content)
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    with replacing(directory / name, mode=0o600) as file:
        file.write(entry)


def usage() -> tuple[int, int]:
    """Returns the number of cache entries on disk, and the sum of their sizes in bytes."""
    sizes = [file.stat().st_size for file in _files()]
    return len(sizes), sum(sizes)


def digest(traced: str, facts: Mapping[str, object]) -> str:
    """Returns the key of a kernel in the cache: a SHA-256 digest as hexadecimal digits.

    Args:
        traced: the text of the traced module, with locations.
        facts: the other inputs of lowering by name, such as dialect, chip and switches.
    """
    known = {"versions": versions(), "plugins": plugin_key(),
             "facts": {name: repr(facts[name]) for name in sorted(facts)}, "traced": traced}
    return hashlib.sha256(json.dumps(known, sort_keys=True).encode()).hexdigest()


@cache
def versions() -> list[str]:
    """Returns the parts of all keys that identify the software: the versions of this package, of xDSL and of the entry format.

    A digest of the sizes and modification times of this package's source files is included, so that an edited checkout does not
    find entries of its earlier state.
    """
    package = Path(__file__).resolve().parents[2]
    state = "".join(sorted(_file_states(str(package), "")))
    from tilelang_npu import __version__

    return [__version__, _version_of_xdsl(), hashlib.sha256(state.encode()).hexdigest(), str(_FORMAT)]


def _version_of_xdsl() -> str:
    """Returns the version in the name of xDSL's ``.dist-info`` directory, which is fast; without such a directory (a checkout),
    the version that ``importlib.metadata`` finds."""
    found = find_spec("xdsl")
    assert found is not None and found.origin is not None, "xDSL is a requirement of this package"
    with os.scandir(Path(found.origin).parent.parent) as entries:
        names = [entry.name for entry in entries if entry.name.startswith("xdsl-") and entry.name.endswith(".dist-info")]
    if len(names) == 1:
        return names[0].removeprefix("xdsl-").removesuffix(".dist-info")
    from importlib.metadata import version

    return version("xdsl")


def _file_states(directory: str, name: str) -> Iterator[str]:
    """Yields each source file in a directory, with the time of its last change and its size."""
    with os.scandir(directory) as found:
        for entry in found:
            if entry.is_dir():
                yield from _file_states(entry.path, f"{name}{entry.name}/")
            elif entry.name.endswith(".py"):
                known = entry.stat()
                yield f"{name}{entry.name}:{known.st_mtime_ns}:{known.st_size}\n"


def load(key: str) -> Entry | None:
    """Returns the entry with a key from memory or from disk; None if there is none, or if it cannot be read."""
    if not is_cache_enabled():
        return _State.memory.get(key)
    if environment.CLEAR_CACHE.is_on() and not _State.cleared:
        with _State.lock:  # other threads wait, and find the cache empty
            if not _State.cleared:
                clear_cache()
                _State.cleared = True
    known = _State.memory.get(key)
    if known is not None:
        return known
    try:
        entry = json.loads(gzip.decompress(read_entry(key, LOWERED_TEXT)))
    except FileNotFoundError:
        return None
    except (OSError, EOFError, zlib.error, ValueError) as error:
        logger.info("cache entry %s cannot be read and is written again: %s", key, error)
        return None
    if not isinstance(entry, dict) or entry.get("key") != key:
        return None
    _remember(key, entry)
    return entry


def _remember(key: str, entry: Entry) -> None:
    with _State.lock:
        _State.memory[key] = entry
        while len(_State.memory) > _MAX_IN_MEMORY:
            del _State.memory[next(iter(_State.memory))]


def store(key: str, entry: Entry) -> None:
    """Stores an entry in memory and on disk. If the directory cannot be written, the entry is stored in memory only."""
    entry = {**entry, "key": key}
    _remember(key, entry)
    if not is_cache_enabled():
        return
    try:
        write_entry(key, LOWERED_TEXT, gzip.compress(json.dumps(entry).encode(), compresslevel=3, mtime=0))
    except OSError as error:
        logger.info("the kernel is not stored on disk: %s", error)
