"""Loads plug-ins: Python modules that register operations, passes or chips (:mod:`tilelang_npu.plugins`).

A plug-in is loaded if it is installed, as a distribution with an entry point of the group ``tilelang_npu.plugins``, or if the
user names its file (``--load FILE.py``, ``TILELANG_NPU_LOAD``). Installed plug-ins are loaded on the first of these events: a
kernel is compiled, an unknown name of ``T`` or an unknown chip is looked up, or MLIR text is parsed. A process in which none of
them happens loads no plug-in.

Of the package, this module imports only the errors, so that every other module can import it.
"""

from __future__ import annotations

import operator
import os
import sys
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from threading import RLock
from types import ModuleType
from typing import TYPE_CHECKING, NamedTuple

from tilelang_npu.errors import Location, TileError

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["EntryPoint", "find_entry_points", "forget_files", "load_file", "load_plugins", "loaded_files", "loaded_modules"]

GROUP = "tilelang_npu.plugins"
"""The name of the entry point group of installed plug-ins."""
LOAD = "TILELANG_NPU_LOAD"
"""The environment variable that lists paths of plug-in files, separated as in ``PATH``; child processes inherit it."""
PLUGINS = "TILELANG_NPU_PLUGINS"
"""The environment variable that disables installed plug-ins if it is ``0``, ``false``, ``off`` or ``no``."""


class EntryPoint(NamedTuple):
    """The entry point of an installed plug-in.

    Attributes:
        name: the plug-in's name in the entry point group.
        value: the module to import, or ``MODULE:FUNCTION`` if a function of the module must be called too.
        distribution: the name and the version of the distribution that contains the plug-in.
    """

    name: str
    value: str
    distribution: str


class _Loaded:
    loaded = False
    loading = False
    failed: TileError | None = None
    files: dict[Path, tuple[int, ModuleType]] = {}
    lock = RLock()


def load_plugins() -> bool:
    """Loads the installed plug-ins and the files of ``TILELANG_NPU_LOAD``, unless an earlier call has done so.

    Returns:
        Whether this call loaded at least one plug-in.

    Raises:
        TileError: T820, a plug-in cannot be loaded. A :class:`TileError` that a plug-in raises keeps its own code. Each later
            call raises the same error again.
    """
    if _Loaded.loaded:
        if _Loaded.failed is not None:
            raise _Loaded.failed
        return False
    with _Loaded.lock:
        if _Loaded.loaded or _Loaded.loading:  # by another thread meanwhile, or a plug-in asks while it is loaded
            return False
        _Loaded.loading, some = True, False
        try:
            if os.environ.get(PLUGINS, "").strip().lower() not in ("0", "false", "off", "no"):
                for point in find_entry_points():
                    some = True
                    _load_entry_point(point)
            for path in os.environ.get(LOAD, "").split(os.pathsep):
                if path:
                    some = True
                    load_file(path)
        except TileError as error:
            _Loaded.failed = error
            raise
        finally:
            _Loaded.loading, _Loaded.loaded = False, True
    return some


def find_entry_points() -> Iterator[EntryPoint]:
    """Yields the entry points of the installed plug-ins, in the order of ``sys.path``.

    If ``sys.path`` has two distributions of the same name, only the first is searched, as Python imports only the first.
    ``importlib.metadata`` does the same, but importing it takes longer than reading a few hundred small files.
    """
    from pathlib import Path

    seen: set[str] = set()
    for place in sys.path:
        try:
            with os.scandir(place or os.curdir) as entries:
                folders = sorted((entry.name, entry.path) for entry in entries
                                 if entry.name.endswith((".dist-info", ".egg-info")))
        except OSError:
            continue
        for name, path in folders:
            stem = name.rpartition(".")[0]
            distribution, _, version = stem.partition("-")
            key = distribution.lower().replace("_", "-").replace(".", "-")
            if key in seen:
                continue
            seen.add(key)
            try:
                text = Path(path, "entry_points.txt").read_text(encoding="utf-8")
            except (OSError, UnicodeDecodeError):
                continue
            if f"[{GROUP}]" in text:
                yield from _points_of(text, f"{distribution} {version.partition('-')[0]}".strip())


def _points_of(text: str, distribution: str) -> Iterator[EntryPoint]:
    """Yields the entry points of the group ``tilelang_npu.plugins`` in the text of an ``entry_points.txt``."""
    section = ""
    for line in map(str.strip, text.splitlines()):
        if line.startswith("["):
            section = line.strip("[]").strip()
        elif section == GROUP and "=" in line and not line.startswith(("#", ";")):
            name, _, value = line.partition("=")
            yield EntryPoint(name.strip(), value.partition("[")[0].strip(), distribution)


def _load_entry_point(point: EntryPoint) -> None:
    from importlib import import_module

    module, _, function = point.value.partition(":")
    try:
        loaded = import_module(module)
        if function:
            operator.attrgetter(function)(loaded)()
    except Exception as error:
        # A module that fails is in sys.modules no more.
        file = _file_of(module)
        raise _failure(f"the plug-in {point.name!r} of the distribution {point.distribution}", error, file, file or "",
                       f"repair or uninstall {point.distribution.partition(' ')[0]}, or set {PLUGINS}=0, which leaves all "
                       "installed plug-ins out") from error


def _file_of(module: str) -> str | None:
    """Returns the path of a module's file; None if the module is not found."""
    from importlib.util import find_spec

    try:
        spec = find_spec(module)
    except (ImportError, AttributeError, ValueError):
        return None
    return None if spec is None else spec.origin


def load_file(path: str | os.PathLike[str]) -> ModuleType:
    """Executes a plug-in file and returns its module. A loaded file is executed again only if it has changed since.

    The file's folder is appended to ``sys.path``, so that the plug-in can import modules in the same folder.

    Args:
        path: a Python file, or the folder of a package or its ``__init__.py``, which is imported under the package's name.

    Raises:
        TileError: T820, the file cannot be read, is not a Python file, or raises an exception that is not a TileError. A
            TileError that the file raises keeps its own code.
    """
    from importlib import import_module, reload
    from importlib.util import module_from_spec, spec_from_file_location
    from pathlib import Path
    from zlib import crc32

    file = Path(path).expanduser().resolve()
    file = file / "__init__.py" if file.is_dir() else file
    with _Loaded.lock:
        try:
            changed = file.stat().st_mtime_ns
        except OSError as error:
            raise TileError(f"the plug-in {path} cannot be read: {error.strerror}", code="T820",
                            help="give the path of a Python file that registers operations, passes or chips") from None
        known = _Loaded.files.get(file)
        if known is not None and known[0] == changed:
            return known[1]
        package = file.name == "__init__.py"
        # Two plug-ins may have one file name; a process that unpickles a kernel looks for its functions under the same name.
        name = file.parent.name if package else f"tilelang_plugin_{file.stem}_{crc32(str(file).encode()):08x}"
        folder = str(file.parent.parent if package else file.parent)
        spec = None if package else spec_from_file_location(name, file)
        if not package and (spec is None or spec.loader is None):
            raise TileError(f"the plug-in {path} is not a Python file", code="T820",
                            help="give the path of a file that ends in .py, or the folder of a package")
        before = sys.modules.get(name)
        if folder not in sys.path:
            sys.path.append(folder)
        try:
            if spec is None or spec.loader is None:
                module = import_module(name) if before is None else reload(before)
            else:
                module = sys.modules[name] = module_from_spec(spec)
                spec.loader.exec_module(module)
        except Exception as error:
            if before is None:
                sys.modules.pop(name, None)
            else:
                sys.modules[name] = before
            raise _failure(f"the plug-in {path}", error, str(file), str(path), "repair the file") from error
        _Loaded.files[file] = changed, module
        return module


@contextmanager
def loaded_files(files: Sequence[str | os.PathLike[str]]) -> Iterator[None]:
    """Returns a context manager that loads plug-in files; processes that are started inside of the ``with`` statement load them
    too, because ``TILELANG_NPU_LOAD`` lists them there. What the files registered stays registered after the statement.

    Raises:
        TileError: T820, a file cannot be loaded.
    """
    from pathlib import Path

    before = os.environ.get(LOAD)
    os.environ[LOAD] = os.pathsep.join([*filter(None, [before]), *(str(Path(file).resolve()) for file in files)])
    try:
        for file in files:
            load_file(file)
        yield
    finally:
        if before is None:
            os.environ.pop(LOAD, None)
        else:
            os.environ[LOAD] = before


def loaded_modules() -> dict[Path, ModuleType]:
    """Returns the modules of the plug-in files that are loaded, by the files' paths."""
    return {file: module for file, (_, module) in _Loaded.files.items()}


def forget_files(kept: Collection[Path]) -> None:
    """Forgets which plug-in files are loaded, so that the next :func:`load_file` for one of them executes the file again.

    Args:
        kept: the files to remember as loaded.
    """
    with _Loaded.lock:
        for file in set(_Loaded.files) - set(kept):
            del _Loaded.files[file]


def _failure(what: str, error: Exception, file: str | None, shown: str, advice: str) -> TileError:
    """Returns the error for a plug-in that raised an exception.

    The position of the error is the last line of the plug-in's file that was executed.

    Args:
        what: the description of the plug-in in the message.
        error: the exception.
        file: the path of the plug-in's file, as in stack frames; None if it is not known.
        shown: the path of the file as the user gave it.
        advice: the help of the error, if the exception has none.
    """
    line, frames = 0, error.__traceback__
    while frames is not None:
        line = frames.tb_lineno if frames.tb_frame.f_code.co_filename == file else line
        frames = frames.tb_next
    place = Location(shown, line) if line else None
    if isinstance(error, SyntaxError) and error.filename == file and error.lineno:
        place = Location(shown, error.lineno, error.offset or 0)
    if isinstance(error, TileError):
        return TileError(f"{what}: {error.message}", code=error.code, location=error.location or place, notes=error.notes,
                         help=error.help or advice)
    text = error.msg if isinstance(error, SyntaxError) else str(error)
    return TileError(f"{what} cannot be loaded: {type(error).__name__}: {text}", code="T820", location=place, help=advice)
