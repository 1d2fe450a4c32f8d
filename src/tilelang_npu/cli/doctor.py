"""The command ``doctor``, which prints versions and settings, for bug reports and to find out why a package or setting is not
used.
"""

from __future__ import annotations

import argparse
import platform
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version

from tilelang_npu import __version__, compat, plugin_loading
from tilelang_npu.cli.parser import Commands
from tilelang_npu.errors import TileError
from tilelang_npu.plugins.registry import registrations
from tilelang_npu.runtime.cache import authentication, entries
from tilelang_npu.runtime.reports.mlir_bindings import installed_bindings
from tilelang_npu.runtime.settings import environment
from tilelang_npu.runtime.settings.targets import select_chip

__all__ = ["add_to", "doctor"]

_REQUIRED = ("numpy", "ml_dtypes", "xdsl", "threadpoolctl", "typing-extensions")
_OPTIONAL = ("torch", "iree-base-compiler", "matplotlib", "filecheck")


def add_to(commands: Commands) -> None:
    """Adds the command ``doctor`` to the parser."""
    parser = commands.add_parser("doctor", help="show versions, settings and cache",
                                 description="Versions, optional packages, environment, cache, BLAS threads.")
    parser.set_defaults(command=doctor)


def doctor(_: argparse.Namespace) -> int:
    """Prints versions and settings, and returns 1 if one of them prevents kernels from running, otherwise 0."""
    wrong = 0
    for name, fact, fine in _facts():
        print(f"{name:<22} {fact}" + ("" if fine else "   <-- kernels cannot run"))
        wrong += not fine
    return 1 if wrong else 0


def _facts() -> Iterator[tuple[str, str, bool]]:
    yield "tilelang_npu", __version__, True
    yield "python", f"{platform.python_version()} on {platform.system()} {platform.machine()} ({sys.executable})", True
    for name in _REQUIRED:
        found = _version(name)
        yield name, found or "missing", found is not None
    for name in _OPTIONAL:
        yield name, _version(name) or "not installed (optional)", True
    yield "MLIR bindings", installed_bindings() or "none: kernel.mlir_module() needs the mlir extra", True
    try:
        yield "chip", select_chip(None, None, None).name, True
    except TileError as error:
        yield "chip", error.message, False
    for variable in environment.VARIABLES:
        yield variable.name, variable.text() or f"not set ({variable.doc})", True
    count, size = entries.usage()
    state = "on" if entries.is_cache_enabled() else "off"
    yield "kernel cache", f"{state}, {entries.get_cache_dir()}: {count} kernels, {size / 1024:.0f} KiB", True
    yield "cache key", authentication.reason_without_secret() or str(environment.cache_key_file()), True
    yield from _plugins()
    yield from _blas()
    elsewhere = compat.installed_elsewhere()
    yield "import tilelang", f"hidden inside `run`: {elsewhere}" if elsewhere else "tilelang_npu, inside `run`", True


def _plugins() -> Iterator[tuple[str, str, bool]]:
    """Yields a row for each plug-in that is installed or that ``--load`` names.

    A row is the name of the plug-in, a text with the objects that it registered or with its error, and whether it was loaded.
    """
    failure = ""
    try:
        plugin_loading.load_plugins()
    except TileError as error:
        failure = error.message
    if environment.PLUGINS.text() and not environment.PLUGINS.is_on():
        yield "plug-ins", f"left out: {environment.PLUGINS.name}={environment.PLUGINS.text()}", True
    for point in plugin_loading.find_entry_points():
        yield "plug-in", f"{point.name} = {point.value}, of {point.distribution}", True
    for path in plugin_loading.loaded_modules():
        yield "plug-in", str(path), True
    homes: dict[str, list[str]] = {}
    for one in registrations():
        homes.setdefault(one.home, []).append(f"{one.kind} {one.name}")
    for home, names in homes.items():
        yield "registered", f"{', '.join(names)}, by {home}", True
    if failure:
        yield "plug-ins", failure, False


def _blas() -> Iterator[tuple[str, str, bool]]:
    from importlib import import_module

    from threadpoolctl import threadpool_info

    import_module("numpy")  # threadpoolctl finds only BLAS libraries that are loaded
    for pool in threadpool_info():
        yield "BLAS", f"{pool['internal_api']} {pool['version']}, {pool['num_threads']} threads, 1 inside kernels", True


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
