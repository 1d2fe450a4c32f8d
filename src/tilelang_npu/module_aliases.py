"""Makes modules of this package importable under a second name, the one that TileLang uses, such as ``tilelang.autotuner``.

Both names import the same module object.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib.abc import Loader, MetaPathFinder
else:
    Loader = MetaPathFinder = object  # importing the abstract classes would load many modules


class AliasLoader(Loader):
    """A module loader that returns another module instead of loading a file.

    Args:
        target: the full name of the module to return.
    """

    def __init__(self, target: str) -> None:
        self._target = target

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = import_module(self._target)
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        # the import system has set the second name's spec on the module, which has its own
        if module.__spec__ is not None:
            module.__spec__ = module.__spec__.loader_state


class ModuleAliases(MetaPathFinder):
    """An import hook (for ``sys.meta_path``) that finds modules of a package, and their submodules, under second names.

    Args:
        package: the name of the package.
        modules: for each second name the actual name of the module, both relative to the package:
            ``{"autotuner": "runtime.tuning.autotune"}``.
    """

    def __init__(self, package: str, modules: Mapping[str, str]) -> None:
        self._package = package
        self._modules = {name: place for name, place in modules.items() if name != place}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        package, _, rest = fullname.partition(".")
        first, dot, below = rest.partition(".")
        if package != self._package or first not in self._modules:
            return None
        place = f"{package}.{self._modules[first]}{dot}{below}"
        try:
            return None if find_spec(place) is None else ModuleSpec(fullname, AliasLoader(place))
        except ModuleNotFoundError:
            return None
