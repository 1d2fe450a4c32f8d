"""``import tilelang`` as another name of this package, by a finder that comes before all others.

``tilelang.x.y`` is the module ``tilelang_npu.x.y`` itself, not a copy: a name set in one is visible in the other. Two tables
have the modules with another name here, and those whose names are in several modules here. An installed TileLang is hidden
while the alias is installed.
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

from tilelang_npu.module_aliases import AliasLoader

__all__ = ["gathers", "install", "installed_elsewhere", "uninstall"]

_ALIAS, _PACKAGE = "tilelang", "tilelang_npu"

_MOVED: Mapping[str, str] = {
    "tilelang.language.reduce_ascend": "tilelang_npu.language.reduction",
    "tvm": "tilelang_npu.compat.tvm",
}
"""Modules with another name here, except those that this package has under both names."""
_CARVER = "tilelang_npu.compat.carver"
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
"""Modules that exist only to import from: their names, and the module that defines each name."""


def _target(name: str) -> str:
    return _MOVED.get(name, _PACKAGE + name[len(_ALIAS) :])


class _Gather(Loader):
    """Makes a module of names that several modules here define."""

    def create_module(self, spec: ModuleSpec) -> None:
        """None: the import system makes the module."""

    def exec_module(self, module: ModuleType) -> None:
        for name, home in _GATHERED[module.__name__].items():
            setattr(module, name, getattr(import_module(home), name))


class _Absent:
    """A module of TileLang that this package does not have."""

    def __init__(self, name: str, why: str) -> None:
        self._name, self._why = name, why

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        msg = f"no module named '{self._name}.{name}': {self._why}"
        raise ModuleNotFoundError(msg, name=f"{self._name}.{name}")


class _AliasFinder(MetaPathFinder):
    """Finds ``tilelang`` and its submodules; other names are left to the finders after it."""

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
            return ModuleSpec(fullname, AliasLoader(_target(fullname)))
        if fullname == f"{_ALIAS}.jit":  # a package there, a function here: an import below it raises a clear error
            vars(import_module(_PACKAGE).jit)["adapter"] = _Absent(
                "tilelang.jit.adapter", f"{_PACKAGE} generates no AscendC or PTO text, and no library")
        msg = f"no module named {fullname!r}: {_PACKAGE} does not have this part of TileLang"
        raise ModuleNotFoundError(msg, name=fullname)


_FINDER = _AliasFinder()


def install() -> None:
    """Makes ``import tilelang`` mean this package, in the whole process. Idempotent."""
    if _FINDER not in sys.meta_path:
        _forget()
        sys.meta_path.insert(0, _FINDER)


def uninstall() -> None:
    """Undoes :func:`install`; modules that scripts have imported through the alias stay in them."""
    if _FINDER in sys.meta_path:
        sys.meta_path.remove(_FINDER)
        _forget()


def gathers(name: str) -> bool:
    """Whether the alias is installed and ``tilelang.<name>`` is a module that exists only to import from."""
    return _FINDER in sys.meta_path and f"{_ALIAS}.{name}" in _GATHERED


def _forget() -> None:
    for name in [name for name in sys.modules if name in (_ALIAS, "tvm") or name.startswith(_ALIAS + ".")]:
        del sys.modules[name]


def installed_elsewhere() -> str | None:
    """The path of an installed TileLang that the alias hides; None where there is none."""
    spec = PathFinder.find_spec(_ALIAS)
    return None if spec is None else spec.origin or next(iter(spec.submodule_search_locations or ()), None)
