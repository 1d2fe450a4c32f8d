"""The list of everything that plug-ins have registered, with the module that registered it and a function that removes it."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from itertools import takewhile
from threading import RLock
from types import FrameType
from typing import NamedTuple

from tilelang_npu import plugin_loading
from tilelang_npu.errors import TileError

__all__ = [
    "Registration", "add_registration", "calling_globals", "generation", "load_sources", "plugin_key", "registrations",
    "sources", "temporary", "unregister",
]


class Registration(NamedTuple):
    """An operation, a pass or a chip that a plug-in registered.

    Attributes:
        kind: ``op``, ``pass`` or ``chip``.
        name: the name of the operation, pass or chip.
        home: the name of the module that registered it.
        thing: the registered object: the entry of the op table, the class of the pass, or the chip.
        digest: a digest of the plug-in's source (:mod:`tilelang_npu.plugins.identity`).
        add: adds the object to the op table, the pipeline or the chips, and returns a function that removes it again.
        remove: the function that the last call of ``add`` returned.
    """

    kind: str
    name: str
    home: str
    thing: object
    digest: str
    add: Callable[[], Callable[[], None]]
    remove: Callable[[], None]


_REGISTERED: dict[tuple[str, str], Registration] = {}
_LOCK = RLock()
_COUNT = [0]


def calling_globals() -> Mapping[str, object]:
    """Returns the global variables of the module outside of this package whose code called into the package; an empty mapping
    if all calling frames belong to the package."""
    frame: FrameType | None = inspect.currentframe()
    while frame is not None and str(frame.f_globals.get("__name__", "")).partition(".")[0] == "tilelang_npu":
        frame = frame.f_back
    return frame.f_globals if frame is not None else {}


def registrations() -> tuple[Registration, ...]:
    """Returns all current registrations, in the order in which they were made."""
    return tuple(_REGISTERED.values())


def generation() -> int:
    """Returns a counter that increases whenever something is registered or unregistered."""
    return _COUNT[0]


def add_registration(kind: str, name: str, home: str, thing: object, add: Callable[[], Callable[[], None]]) -> None:
    """Registers an operation, a pass or a chip. If the same module has registered the name before, as happens if a notebook
    cell is executed again, the new registration replaces the old one.

    Args:
        kind, name, home, thing, add: the fields of :class:`Registration`.

    Raises:
        TileError: T821, another module has registered the name; or any error that ``add`` raises. The earlier registration of
            the name then stays in effect.
    """
    with _LOCK:
        before = _REGISTERED.get((kind, name))
        earlier = dict(_REGISTERED)
        if before is not None:
            if before.home != home:
                words = {"op": "operation"}.get(kind, kind)
                raise TileError(f"the {words} {name!r} is registered by two plug-ins, {before.home} and {home}", code="T821",
                                help=f"rename the {words} in one of the two plug-ins, or load only one of them")
            unregister(kind, name)
        from tilelang_npu.plugins.identity import source_digest  # here: most processes have no plug-in

        try:
            remove = add()
        except Exception:
            _restore(earlier)
            raise
        _REGISTERED[kind, name] = Registration(kind, name, home, thing, source_digest(home, thing), add, remove)
        _COUNT[0] += 1


def _restore(earlier: Mapping[tuple[str, str], Registration]) -> None:
    """Makes registrations those of an earlier time again, in the same order, on which pipelines and cache keys depend."""
    kept = sum(1 for _ in takewhile(lambda pair: pair[0] is pair[1], zip(_REGISTERED.values(), earlier.values(), strict=False)))
    for key in reversed(list(_REGISTERED)[kept:]):
        unregister(*key)
    for key, registration in list(earlier.items())[kept:]:
        _REGISTERED[key] = registration._replace(remove=registration.add())
        _COUNT[0] += 1


def unregister(kind: str, name: str) -> None:
    """Removes the registration of an operation, a pass or a chip.

    Args:
        kind: ``op``, ``pass`` or ``chip``.
        name: the name under which it was registered.

    Raises:
        KeyError: nothing of this kind is registered under the name.
    """
    with _LOCK:
        _REGISTERED.pop((kind, name)).remove()
        _COUNT[0] += 1


def plugin_key() -> list[str]:
    """Returns the part of a kernel-cache key that depends on plug-ins: kind, name and source digest of each registration.

    Loads the installed plug-ins first, because each of them can affect any kernel.
    """
    plugin_loading.load_plugins()
    return [f"{one.kind} {one.name} {one.digest}" for one in registrations()]


def sources() -> list[tuple[str, str]]:
    """Returns the files and modules that another process must load to have the same registrations: pairs of ``file`` and a
    path, or of ``module`` and a module name, for :func:`load_sources`.

    Raises:
        TileError: T733, the main script or a module without a file registers something, which another process cannot load.
    """
    plugin_loading.load_plugins()
    files = {getattr(module, "__name__", ""): str(path) for path, module in plugin_loading.loaded_modules().items()}
    found: dict[tuple[str, str], None] = {}
    for one in registrations():
        if one.home in files:
            found["file", files[one.home]] = None
        elif one.home == "__main__" or getattr(sys.modules.get(one.home), "__file__", None) is None:
            raise TileError(f"the {one.kind} {one.name!r} is registered by the script itself, which other processes do not run",
                            code="T733", help="move the registration to a separate file, and import that file or name it with"
                                              " --load; or use threads of this process (executor='threads')")
        else:
            found["module", one.home] = None
    return list(found)


def load_sources(given: Sequence[tuple[str, str]]) -> None:
    """Loads the files and modules that :func:`sources` returned in another process.

    Args:
        given: the result of :func:`sources`.
    """
    plugin_loading.load_plugins()
    for kind, place in given:
        if kind == "file":
            plugin_loading.load_file(place)
        else:
            import_module(place)


@contextmanager
def temporary() -> Iterator[None]:
    """Returns a context manager that restores, at the end of the ``with`` statement, the registrations of its beginning: those
    that the body made are removed, and those that it removed or replaced are made again. Plug-in files that the body loaded can
    be loaded again afterwards."""
    before, files = dict(_REGISTERED), plugin_loading.loaded_modules()
    try:
        yield
    finally:
        _restore(before)
        plugin_loading.forget_files(files)
