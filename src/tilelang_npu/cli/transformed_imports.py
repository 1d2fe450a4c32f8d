"""Imports of modules whose source is changed before it is executed, as that of the script which imports them."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType

from tilelang_npu.sharing import parse_python

__all__ = ["transformed_imports"]

Transform = Callable[[ast.AST], ast.AST]


class _Loader(SourceFileLoader):
    """Loads a module from its changed source; no compiled file is read or written."""

    def __init__(self, name: str, path: str, transform: Transform) -> None:
        super().__init__(name, path)
        self._transform = transform

    def get_code(self, fullname: str) -> CodeType:
        tree = self._transform(parse_python(self.get_data(self.path), self.path))
        assert isinstance(tree, ast.Module)
        return compile(tree, self.path, "exec", dont_inherit=True)


class _Finder:
    """Finds the modules of a folder, and leaves all others to Python's own finders."""

    def __init__(self, folder: Path, transform: Transform) -> None:
        self._folder, self._transform = folder, transform
        self.loaded: list[str] = []

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Returns the spec of a module of the folder; None for other modules."""
        spec = PathFinder.find_spec(name, path, target)
        if spec is None or type(spec.loader) is not SourceFileLoader or spec.origin is None:
            return None
        place = Path(spec.origin).resolve()
        if not place.is_relative_to(self._folder) or "site-packages" in place.parts:
            return None
        self.loaded.append(name)
        spec.loader = _Loader(name, spec.origin, self._transform)
        return spec


@contextmanager
def transformed_imports(folder: Path, transform: Transform) -> Iterator[None]:
    """A context manager in which modules of a folder are imported with a changed source.

    Modules that are imported already, and those of packages that are installed below the folder, are left as they are. The
    imported modules are forgotten at the end.

    Args:
        folder: the folder, with its subfolders.
        transform: a function that changes the syntax tree of a module.
    """
    finder = _Finder(folder.resolve(), transform)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        for name in finder.loaded:
            sys.modules.pop(name, None)
