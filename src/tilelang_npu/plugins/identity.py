"""A digest of the source of a plug-in, which is part of the keys of the kernel cache: if a plug-in changes, its digest changes,
and kernels that were compiled with the old plug-in are not found.

A plug-in's effect on the compilation of a kernel can depend on any of its code. Therefore the digest covers

- the text of the file that registers something, and the texts of the files of the same package and of the user's other files
  that this file imports, directly or indirectly;
- modification times and sizes of the files of libraries that it imports;
- the values that a registered function refers to (closure, defaults, globals), and the fields of a registered op-table entry.

If a value has no textual form that is equal in every process, the digest contains random bytes, so that no other process finds
a cached kernel under it.
"""

from __future__ import annotations

import ast
import os
import sys
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import fields, is_dataclass
from functools import cache, lru_cache
from pathlib import Path
from types import CodeType, FunctionType, ModuleType

from tilelang_npu.sharing import parse_python

__all__ = ["source_digest"]

_FIXED = frozenset({"tilelang_npu", "tilelang", "numpy", "xdsl", "ml_dtypes", *sys.stdlib_module_names})
"""The names of packages that the digest leaves out: the cache key has their versions anyway, or they belong to Python."""
_DATA = (bool, int, float, complex, str, bytes, Mapping, Sequence, Set)
"""The types of class attributes that the digest covers in addition to methods, such as the default of a pass's option."""


def source_digest(home: str, thing: object) -> str:
    """Returns the digest (SHA-256, in hexadecimal) of something that a module registers, and of the module's source.

    Args:
        home: the name of the module.
        thing: the registered object: an entry of the op table, the class of a pass, or a chip.
    """
    import hashlib

    parts = [*_file_texts(home), *_texts(thing, {})]
    return hashlib.sha256("\0".join(parts).encode(errors="surrogatepass")).hexdigest()


# -- files -------------------------------------------------------------------------------------------------------------


def _file_texts(home: str) -> Iterator[str]:
    """Yields the texts of the plug-in's files, and the modification times and sizes of the library files that they import."""
    file = getattr(sys.modules.get(home), "__file__", None)
    if file is not None:  # not in a cell of a notebook, or in text that was executed: these are digested by their code
        try:
            yield from _followed(home, Path(file), Path(file).stat().st_mtime_ns)
        except OSError:
            yield os.urandom(16).hex()


@lru_cache(maxsize=64)  # one file may register many things
def _followed(home: str, file: Path, _changed: int) -> tuple[str, ...]:
    """Returns the text of a module's file and, recursively, those of the files that it imports, also inside of functions; for
    a file of a library its modification time and size.

    Args:
        home: the name of the module.
        file: the file of the module.
        _changed: the modification time of the file, a part of the cache key.
    """
    package = home.partition(".")[0]
    pending, seen = [(home, file)], set[Path]()
    found: list[str] = []
    while pending:
        name, path = pending.pop()
        path = path.resolve()
        if path in seen:
            continue
        seen.add(path)
        text = path.read_text(encoding="utf-8", errors="surrogateescape")
        found.append(text)
        around = name if path.name == "__init__.py" else name.rpartition(".")[0]
        for other in sorted(_imported(text, around)):
            top = other.partition(".")[0]
            place = _file_of(other, path.parent) if top not in _FIXED else None
            if place is None:
                continue
            if top != package and _is_library(place):
                state = place.stat()
                found.append(f"{other} {state.st_mtime_ns} {state.st_size}")
            else:
                pending.append((other, place))
    return tuple(found)


def _imported(text: str, package: str) -> set[str]:
    """Returns the names of the modules that a module's text imports, also inside of functions.

    A name that ``from a import b`` imports is returned as ``a.b`` although it need not be a module.

    Args:
        text: the source of the module.
        package: the name of the package that the module belongs to, for relative imports.
    """
    try:
        tree = parse_python(text)
    except (SyntaxError, ValueError):
        return set()
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            parts = package.split(".") if node.level else []
            base = ".".join([*parts[:len(parts) - node.level + 1], *([node.module] if node.module else [])])
            names = [base, *(f"{base}.{alias.name}" for alias in node.names)]
        else:
            continue
        for name in names:  # importing a.b executes a too
            parts = name.split(".")
            found.update(".".join(parts[:count]) for count in range(1, len(parts) + 1))
    return found


def _file_of(name: str, folder: Path) -> Path | None:
    """Returns the file of a module: that of the loaded module, or the one in the folder of its package, or for a top-level
    module the one in ``folder``, which is the folder of the importing file. None if there is none."""
    loaded = getattr(sys.modules.get(name), "__file__", None)
    if loaded is not None:
        return Path(loaded)
    parent, _, last = name.rpartition(".")
    folders = [Path(place) for place in getattr(sys.modules.get(parent), "__path__", ())] if parent else [folder]
    places = (place for one in folders for place in (one / f"{last}.py", one / last / "__init__.py"))
    return next((place for place in places if place.is_file()), None)


@cache
def _library_places() -> tuple[Path, ...]:
    import sysconfig

    paths = sysconfig.get_paths()
    return tuple(Path(paths[name]).resolve() for name in ("stdlib", "platstdlib", "purelib", "platlib"))


def _is_library(file: Path) -> bool:
    return any(file.resolve().is_relative_to(place) for place in _library_places())


# -- values ------------------------------------------------------------------------------------------------------------


def _texts(value: object, seen: dict[int, object]) -> Iterator[str]:
    """Yields the parts of a text that is equal for equal values in every process.

    Args:
        value: the value.
        seen: the containers and objects visited so far, by ``id``. They yield nothing again, so that cyclic references end.
    """
    if value is None or isinstance(value, bool | int | float | complex | str | bytes):
        yield f"{type(value).__name__} {value!r}"
        return
    if id(value) in seen:
        return
    seen[id(value)] = value  # it stays alive, so that no other object gets its id
    if isinstance(value, FunctionType):
        yield from _function_texts(value, seen)
    elif isinstance(value, CodeType):
        yield from _code_texts(value, seen)
    elif isinstance(value, ModuleType):
        yield value.__name__
    elif isinstance(value, type):
        yield f"{value.__module__}.{value.__qualname__}"
        if value.__module__.partition(".")[0] not in _FIXED:
            for name, member in sorted(vars(value).items()):
                is_code = isinstance(member, FunctionType | property | staticmethod | classmethod)
                if is_code or (isinstance(member, _DATA) and not name.startswith("__")):
                    yield name
                    yield from _texts(getattr(member, "__func__", getattr(member, "fget", member)), seen)
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _texts(key, seen)
            yield from _texts(item, seen)
    elif isinstance(value, Set):
        yield from sorted("\0".join(_texts(item, dict(seen))) for item in value)
    elif isinstance(value, Sequence):
        yield f"{type(value).__name__} {len(value)}"
        for item in value:
            yield from _texts(item, seen)
    elif is_dataclass(value):
        yield type(value).__qualname__
        for field in fields(value):
            yield field.name
            yield from _texts(getattr(value, field.name), seen)
    elif type(value).__module__.partition(".")[0] in _FIXED and hasattr(value, "tobytes"):
        yield f"{value!r} {value.tobytes().hex()}"
    elif getattr(value, "__module__", None) is not None and getattr(value, "__name__", None) is not None:
        yield f"{value.__module__}.{value.__name__}"  # type: ignore[attr-defined]  # a ufunc, or a built-in function
    elif type(value).__repr__ is not object.__repr__ and " at 0x" not in repr(value):
        yield f"{type(value).__qualname__} {value!r}"
    else:
        yield os.urandom(16).hex()


def _function_texts(value: FunctionType, seen: dict[int, object]) -> Iterator[str]:
    """Yields the name, the byte code and the constants of a function, and its defaults, closure and globals; of a function of
    this package or of a library only the name."""
    yield f"{value.__module__}.{value.__qualname__}"
    if (value.__module__ or "").partition(".")[0] in _FIXED:
        return
    yield from _code_texts(value.__code__, seen)
    yield from _texts((value.__defaults__, value.__kwdefaults__), seen)
    for cell in value.__closure__ or ():
        try:
            yield from _texts(cell.cell_contents, seen)
        except ValueError:  # not assigned yet
            yield "empty"
    for name in sorted(_names_in(value.__code__)):
        if name in value.__globals__:
            yield name
            yield from _texts(value.__globals__[name], seen)


def _code_texts(code: CodeType, seen: dict[int, object]) -> Iterator[str]:
    yield f"{code.co_code.hex()} {code.co_names} {code.co_varnames} {code.co_freevars}"
    for constant in code.co_consts:
        yield from _texts(constant, seen)


def _names_in(code: CodeType) -> set[str]:
    inner = [_names_in(constant) for constant in code.co_consts if isinstance(constant, CodeType)]
    return set(code.co_names).union(*inner)
