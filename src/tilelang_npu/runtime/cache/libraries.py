"""Distinguishes libraries from the user's modules, and lists the libraries whose results change from one call to the next.

The result of a library's function is assumed to depend on its arguments alone while the process runs. This module lists the
exceptions: random numbers, the time, files, the environment, and functions that inspect other frames.
"""

from __future__ import annotations

import functools
import sys
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

OWN = ("tilelang_npu", "tilelang")
"""The names under which this package is imported."""

CHANGING_BUILTINS = frozenset({
    "open", "input", "globals", "locals", "vars", "eval", "exec", "compile", "__import__", "id", "breakpoint"})
"""Built-in functions whose result depends on more than their arguments, or that read variables which the caller does not
name."""

_CHANGING = frozenset({
    "random", "secrets", "time", "datetime", "uuid", "os", "posix", "nt", "posixpath", "ntpath", "genericpath", "io", "_io",
    "socket", "subprocess", "tempfile", "glob", "shutil", "pathlib", "urllib", "http", "getpass", "inspect", "gc", "ctypes",
    "_ctypes", "importlib", "contextvars", "fileinput", "linecache", "sched", "sqlite3", "shelve", "dbm", "sys"})
_CHANGING_NAMES = {
    "numpy": frozenset({"random", "load", "fromfile", "loadtxt", "genfromtxt", "memmap"}),
    "torch": frozenset({"rand", "randn", "randint", "randperm", "rand_like", "randn_like", "randint_like", "normal",
                        "bernoulli", "multinomial", "random", "load", "seed", "initial_seed", "get_rng_state"}),
    "typing": frozenset({"get_type_hints"})}
_HEAP, _IMMUTABLE = 1 << 9, 1 << 8
"""Bits of a class's flags (``Py_TPFLAGS_HEAPTYPE``, ``Py_TPFLAGS_IMMUTABLETYPE``), see ``Include/object.h`` of Python."""
_CONSTANT = {
    "os": frozenset({"sep", "linesep", "name", "cpu_count", "PathLike", "fspath", "path"}),
    **dict.fromkeys(("posixpath", "ntpath"), frozenset({
        "join", "basename", "dirname", "split", "splitext", "sep", "normpath"}))}


def package_of(module: str | None) -> str:
    """Returns the first part of a module's dotted name, its top-level package; an empty string for None."""
    return (module or "").partition(".")[0]


@functools.lru_cache(maxsize=1024)
def is_own(module: str) -> bool:
    """Whether a module, given by its name, belongs to this package."""
    return package_of(module) in OWN


@functools.lru_cache(maxsize=1024)
def is_users(module: str, home: str) -> bool:
    """Whether a module belongs to the user, and not to an installed library or to Python.

    Args:
        module: the module's name.
        home: the name of a top-level package that counts as the user's even if it is installed; an empty string for none.
    """
    package = package_of(module)
    return (bool(home) and package == home) or not is_library(package)


def changes(module: str) -> bool:
    """Whether results of a library's module, given by its name, can change from one call to the next, such as random
    numbers."""
    return package_of(module) in _CHANGING or module.startswith("numpy.random")


def may_change(module: str, name: str) -> bool:
    """Whether the value of a name in a library's module, or the result of the function, can change from one call to the next.

    Args:
        module: the name of the module.
        name: the name in the module.
    """
    if name in _CONSTANT.get(module, ()):
        return False
    return changes(module) or name in _CHANGING_NAMES.get(package_of(module), ())


def name_of(thing: object) -> str:
    """Returns the text ``MODULE.QUALNAME`` for a class or a function."""
    name = getattr(thing, "__qualname__", None) or getattr(thing, "__name__", thing)
    return f"{getattr(thing, '__module__', None) or 'numpy'}.{name}"


def find_by_name(module: str | None, name: str) -> object:
    """Returns the value of a qualified name in a loaded module; None if there is none."""
    found: object = sys.modules.get(module or "")
    for part in name.split("."):
        if found is None:
            return None
        found = vars(found).get(part) if isinstance(found, (ModuleType, type)) else None
    return found


def is_fixed(kind: type) -> bool:
    """Whether the name of a library's class identifies the class.

    It does if the class's module contains the class under this name, or if the class is a C class that cannot be changed. Any
    other class was created at run time by a function of the library, possibly from the user's values.
    """
    unchangeable = not kind.__flags__ & _HEAP or bool(kind.__flags__ & _IMMUTABLE)
    return unchangeable or find_by_name(kind.__module__, kind.__qualname__) is kind


@functools.cache
def _library_places() -> tuple[Path, ...]:
    import sysconfig
    from pathlib import Path

    names = ("stdlib", "platstdlib", "purelib", "platlib")
    return (*(Path(sysconfig.get_paths()[name]).resolve() for name in names), Path(__file__).resolve().parents[2])


@functools.lru_cache(maxsize=1024)
def is_library(package: str) -> bool:
    """Whether a top-level package, given by its name, is an installed library, belongs to Python, or is this package."""
    if package in ("__main__", "__mp_main__"):
        return False
    if package in OWN:
        return True
    place = getattr(sys.modules.get(package), "__file__", None)
    if place is None:
        return package in sys.builtin_module_names or package in sys.stdlib_module_names
    from pathlib import Path

    return any(Path(place).resolve().is_relative_to(parent) for parent in _library_places())
