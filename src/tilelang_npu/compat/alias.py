"""``import tilelang`` as another name of this package, by a finder in front of all others.

``tilelang.x.y`` is the module ``tilelang_npu.x.y`` itself, not a copy: a name bound through one spelling is seen through the
other. Modules that stand elsewhere here, or whose names this package keeps in several places, are in the two tables. A
TileLang that is really installed is hidden while the alias is there.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec
from types import ModuleType
from typing import NoReturn

from tilelang_npu.places import Stand

__all__ = ["gathers", "install", "installed_elsewhere", "uninstall"]

_ALIAS, _PACKAGE = "tilelang", "tilelang_npu"

# Modules with another name here, beside those that this package itself has under both names.
_MOVED: Mapping[str, str] = {
    "tilelang.language.reduce_ascend": "tilelang_npu.language.reduction",
    "tvm": "tilelang_npu.compat.tvm",
}
_CARVER = "tilelang_npu.compat.carver"
# Modules that exist only as a place to import from: their names, and the module that has each.
_GATHERED: Mapping[str, Mapping[str, str]] = {
    "tilelang.carver.anneal": {"AnnealTemplate": f"{_CARVER}.anneal", "Annealparam": f"{_CARVER}.anneal"},
    "tilelang.carver.anneal.policy": {"AnnealTemplate": f"{_CARVER}.anneal", "Annealparam": f"{_CARVER}.anneal"},
    "tilelang.carver.arch": {"Ascend": f"{_CARVER}.arch", "AscendArch": f"{_CARVER}.arch"},
    "tilelang.carver.arch.ascend": {"Ascend": f"{_CARVER}.arch"},
    "tilelang.carver.template": dict.fromkeys(("MatmulTemplate", "ElementwiseTemplate", "GEMVTemplate"), _CARVER),
    "tilelang.carver.template.base": {"auto_infer_current_arch": f"{_CARVER}.arch"},
    "tilelang.engine": {"lower": "tilelang_npu.runtime.jit.factory"},
    "tilelang.language.fp8": {"determine_fp8_type": "tilelang_npu.compat.torch_types",
                              "determine_torch_fp8_type": "tilelang_npu.compat.torch_types"},
    "tilelang.transform": {"PassConfigKey": "tilelang_npu.runtime.settings.pass_config_keys"},
    "tilelang.utils": {"TensorSupplyType": "tilelang_npu.runtime.reports.profiler", "NPUUtils": f"{_CARVER}.arch",
                       "map_torch_type": "tilelang_npu.compat.torch_types"},
    "tilelang.utils.npu_arch": {"AscendArch": f"{_CARVER}.arch"},
    "tilelang.utils.npu_utils": {"NPUUtils": f"{_CARVER}.arch"},
    "tilelang.utils.target": {"determine_platform": "tilelang_npu.compat.torch_types"},
    "tilelang.utils.tensor": {"TensorSupplyType": "tilelang_npu.runtime.reports.profiler",
                              "get_tensor_supply": "tilelang_npu.runtime.reports.profiler",
                              "map_torch_type": "tilelang_npu.compat.torch_types",
                              "torch_assert_close": "tilelang_npu.compat.testing"},
}


def _target(name: str) -> str:
    return _MOVED.get(name, _PACKAGE + name[len(_ALIAS) :])


class _Gather(Loader):
    """Makes a module of names that this package keeps in several places."""

    def create_module(self, spec: ModuleSpec) -> None:
        """The import system's own way of making a module will do."""

    def exec_module(self, module: ModuleType) -> None:
        for name, home in _GATHERED[module.__name__].items():
            setattr(module, name, getattr(import_module(home), name))


class _Absent:
    """Stands where TileLang has a module that this package has nothing for."""

    def __init__(self, name: str, why: str) -> None:
        self._name, self._why = name, why

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        msg = f"no module named '{self._name}.{name}': {self._why}"
        raise ModuleNotFoundError(msg, name=f"{self._name}.{name}")


class _AliasFinder(MetaPathFinder):
    """Answers for ``tilelang`` and below; every other name is left to the finders behind it."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname not in (_ALIAS, "tvm") and not fullname.startswith(_ALIAS + "."):
            return None
        if fullname in _GATHERED:
            return ModuleSpec(fullname, _Gather(), is_package=True)
        try:
            exists = find_spec(_target(fullname)) is not None
        except ModuleNotFoundError:
            exists = False
        if exists:
            return ModuleSpec(fullname, Stand(_target(fullname)))
        if fullname == f"{_ALIAS}.jit":  # a package there, a function here; whoever looks below it is told what is missing
            vars(import_module(_PACKAGE).jit)["adapter"] = _Absent(
                "tilelang.jit.adapter", f"{_PACKAGE} generates no AscendC or PTO text, and no library")
        msg = f"no module named {fullname!r}: {_PACKAGE} has no part of TileLang that is called so"
        raise ModuleNotFoundError(msg, name=fullname)


_FINDER = _AliasFinder()


def install() -> None:
    """Make ``import tilelang`` mean this package, from now on and in the whole process. Doing it twice is doing it once."""
    if _FINDER not in sys.meta_path:
        _forget()
        sys.meta_path.insert(0, _FINDER)


def uninstall() -> None:
    """Undo :func:`install`; modules that scripts imported through the alias stay theirs."""
    if _FINDER in sys.meta_path:
        sys.meta_path.remove(_FINDER)
        _forget()


def gathers(name: str) -> bool:
    """Whether the alias is installed and ``tilelang.<name>`` is a module that exists only as a place to import from."""
    return _FINDER in sys.meta_path and f"{_ALIAS}.{name}" in _GATHERED


def _forget() -> None:
    for name in [name for name in sys.modules if name in (_ALIAS, "tvm") or name.startswith(_ALIAS + ".")]:
        del sys.modules[name]


def installed_elsewhere() -> str | None:
    """Where a real TileLang is installed that the alias hides; None where there is none."""
    spec = PathFinder.find_spec(_ALIAS)
    return None if spec is None else spec.origin or next(iter(spec.submodule_search_locations or ()), None)
