"""Makes ``import tilelang`` import this package, by an import finder that precedes all others.

``tilelang.x.y`` is the module object ``tilelang_npu.x.y`` itself, not a copy, so an attribute that is set in one is visible in
the other. Two tables list the exceptions: modules that have another name in this package, and modules whose attributes are
defined in several modules of this package. An installed TileLang cannot be imported while the alias is installed.
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
from tilelang_npu.runtime.settings import environment

__all__ = ["gathers", "install", "installed_elsewhere", "is_own_module", "uninstall"]

_ALIAS, _PACKAGE = "tilelang", "tilelang_npu"

_MOVED: Mapping[str, str] = {
    "tilelang.ascend.language": "tilelang_npu.language",
    "tilelang.ascend.language.vmi": "tilelang_npu.language.vmi",
    "tilelang.language.reduce_ascend": "tilelang_npu.language.reduction",
    "tilelang.carver.arch.driver": "tilelang_npu.compat.carver.driver",
    "tilelang.env": "tilelang_npu.compat.env",
    "tilelang.contrib.nvcc": "tilelang_npu.compat.nvcc",
    "tvm": "tilelang_npu.compat.tvm",
}
"""For each module of TileLang that has another name in this package, that name; without modules that exist under both names."""
_CARVER = "tilelang_npu.compat.carver"
_GPU = "tilelang_npu.compat.gpu_host"
_PROFILER = "tilelang_npu.runtime.reports.profiler"
_TUNING = "tilelang_npu.runtime.tuning.autotune"
_KERNEL = "tilelang_npu.runtime.jit.jit_kernel"
_GATHERED: Mapping[str, Mapping[str, str]] = {
    "tilelang.carver.anneal": {"AnnealTemplate": f"{_CARVER}.anneal", "Annealparam": f"{_CARVER}.anneal"},
    "tilelang.carver.anneal.policy": {"AnnealTemplate": f"{_CARVER}.anneal", "Annealparam": f"{_CARVER}.anneal"},
    "tilelang.autotuner.tuner": {"AutoTuner": _TUNING, "autotune": _TUNING},
    "tilelang.autotuner.capture": {"set_autotune_inputs": _TUNING},
    "tilelang.autotuner.param": {"AutotuneResult": _TUNING},
    "tilelang.jit.kernel": {"JITKernel": _KERNEL},
    "tilelang.carver.arch": {"Ascend": f"{_CARVER}.arch", "AscendArch": f"{_CARVER}.arch", "CDNA": f"{_CARVER}.arch",
                             "CUDA": f"{_CARVER}.arch"},
    "tilelang.carver.roller": {"NoRasterization": f"{_CARVER}.templates"},
    "tilelang.carver.roller.rasterization": {"NoRasterization": f"{_CARVER}.templates"},
    "tilelang.ascend": {}, "tilelang.backend": {}, "tilelang.contrib": {}, "tilelang.cuda": {}, "tilelang.tileop": {},
    "tilelang.cuda.intrinsics": {"make_mma_swizzle_layout": "tilelang_npu.language.layouts"},
    "tilelang.backend.target": {"determine_target": _GPU},
    "tilelang.engine.callback": {"register_cuda_postproc_callback": _GPU},
    "tilelang.profiler.bench": {"do_bench": _PROFILER, "suppress_stdout_stderr": _GPU},
    "tilelang.tileop.base": {"GemmWarpPolicy": "tilelang_npu.language.matrix"},
    "tilelang.utils.device": {"get_current_device": _GPU},
    "tilelang.carver.arch.ascend": {"Ascend": f"{_CARVER}.arch"},
    "tilelang.carver.template": dict.fromkeys(("MatmulTemplate", "ElementwiseTemplate", "GEMVTemplate"), _CARVER),
    "tilelang.carver.template.base": {"auto_infer_current_arch": f"{_CARVER}.arch"},
    "tilelang.engine": {"lower": "tilelang_npu.runtime.jit.factory"},
    "tilelang.language.fp8": {"determine_fp8_type": "tilelang_npu.compat.torch_types",
                              "determine_torch_fp8_type": "tilelang_npu.compat.torch_types"},
    "tilelang.transform": {"PassConfigKey": "tilelang_npu.runtime.settings.pass_config_keys", "simplify_prim_func": _GPU},
    "tilelang.transform.pass_config": {"PassConfigKey": "tilelang_npu.runtime.settings.pass_config_keys"},
    "tilelang.transform.simplify": {"apply_simplify": _GPU, "simplify_prim_func": _GPU},
    "tilelang.utils": {"TensorSupplyType": "tilelang_npu.runtime.reports.profiler", "NPUUtils": f"{_CARVER}.arch",
                       "map_torch_type": "tilelang_npu.compat.torch_types"},
    "tilelang.utils.npu_arch": {"AscendArch": f"{_CARVER}.arch"},
    "tilelang.utils.npu_utils": {"NPUUtils": f"{_CARVER}.arch"},
    "tilelang.utils.target": {"determine_platform": "tilelang_npu.compat.torch_types", "check_cuda_availability": _GPU,
                              "check_hip_availability": _GPU, "determine_target": _GPU},
    "tilelang.utils.tensor": {"TensorSupplyType": "tilelang_npu.runtime.reports.profiler",
                              "get_tensor_supply": "tilelang_npu.runtime.reports.profiler",
                              "map_torch_type": "tilelang_npu.compat.torch_types",
                              "torch_assert_close": "tilelang_npu.compat.testing"},
}
"""For each module that scripts import names from and that has no counterpart in this package: the names, and the modules that
define them."""


_REFERENCES = dict.fromkeys(("flash_attn", "flash_attn_interface"), "tilelang_npu.compat.flash_attn")
"""Packages with which GPU scripts compare their results, and the modules that replace them if they are not installed, while
``TILELANG_NPU_GPU`` is set."""


_CARDS = {"shmem": "tilelang_npu.compat.shmem"}
"""The vendor's packages for several cards, and the modules that replace them. An installed one needs real cards."""


_NO_LIBRARY = f"{_PACKAGE} generates no AscendC or PTO text, and no library"


def _target(name: str) -> str:
    return _MOVED.get(name, _PACKAGE + name[len(_ALIAS) :])


class _PackageAliasLoader(AliasLoader):
    """Returns another module, in which a module of TileLang can be found that is not below it in this package."""

    def exec_module(self, module: ModuleType) -> None:
        super().exec_module(module)
        vars(module).setdefault("__path__", [])


def _is_package(name: str) -> bool:
    """Whether TileLang has modules below the named one that this package finds by its tables."""
    return name == "tvm" or any(known.startswith(f"{name}.") for known in (*_MOVED, *_GATHERED))


class _Gather(Loader):
    """Makes a module of names that several modules here define."""

    def create_module(self, spec: ModuleSpec) -> None:
        """None: the import system makes the module."""

    def exec_module(self, module: ModuleType) -> None:
        for name, home in _GATHERED[module.__name__].items():
            setattr(module, name, getattr(import_module(home), name))


class _JitLoader(Loader):
    """Makes ``tilelang.jit``, a package in TileLang and a function here, importable: the function has the package's names."""

    def create_module(self, spec: ModuleSpec) -> None:
        """None: the import system makes a module, which the function then replaces."""

    def exec_module(self, module: ModuleType) -> None:
        here = import_module(_PACKAGE)
        vars(here.jit).update({name: getattr(here, name) for name in ("JITKernel", "compile", "jit")}, __path__=[],
                              __spec__=module.__spec__, adapter=_Absent(f"{_ALIAS}.jit.adapter", _NO_LIBRARY))
        sys.modules[module.__name__] = here.jit


class _TvmPart(Loader):
    """Makes a module of a part of ``tvm``, such as ``tvm.tirx``, which has the attributes of that part."""

    def create_module(self, spec: ModuleSpec) -> None:
        """None: the import system makes the module."""

    def exec_module(self, module: ModuleType) -> None:
        part = import_module("tvm")
        for name in module.__name__.split(".")[1:]:
            part = getattr(part, name)

        def find(name: str) -> object:
            return getattr(part, name)

        module.__getattr__ = find  # type: ignore[method-assign]  # Python calls a module's __getattr__, which the type does not declare


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
    """Finds ``tilelang`` and its submodules, ``tvm`` and ``shmem``; other names are left to the finders after it."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname in _REFERENCES:
            wanted = environment.GPU.is_on() and PathFinder.find_spec(fullname, path) is None
            return ModuleSpec(fullname, AliasLoader(_REFERENCES[fullname])) if wanted else None
        if fullname in _CARDS:
            return ModuleSpec(fullname, AliasLoader(_CARDS[fullname]))
        if fullname.startswith("tvm."):
            return ModuleSpec(fullname, _TvmPart(), is_package=True)
        if fullname not in (_ALIAS, "tvm") and not fullname.startswith(_ALIAS + "."):
            return None
        if fullname in _GATHERED:
            return ModuleSpec(fullname, _Gather(), is_package=True)
        try:
            exists = find_spec(_target(fullname)) is not None
        except ModuleNotFoundError:
            exists = False
        if exists:
            loader = _PackageAliasLoader if _is_package(fullname) else AliasLoader
            return ModuleSpec(fullname, loader(_target(fullname)))
        if fullname == f"{_ALIAS}.jit":
            return ModuleSpec(fullname, _JitLoader(), is_package=True)
        why = _NO_LIBRARY if fullname.startswith(f"{_ALIAS}.jit.") else f"{_PACKAGE} does not have this part of TileLang"
        msg = f"no module named {fullname!r}: {why}"
        raise ModuleNotFoundError(msg, name=fullname)


_FINDER = _AliasFinder()


def install() -> None:
    """Makes ``import tilelang`` import this package, in the whole process. Calling it again has no effect."""
    if _FINDER not in sys.meta_path:
        _forget()
        sys.meta_path.insert(0, _FINDER)


def uninstall() -> None:
    """Undoes :func:`install`. Scripts keep the modules that they have already imported under the name ``tilelang``."""
    if _FINDER in sys.meta_path:
        sys.meta_path.remove(_FINDER)
        _forget()


def is_own_module(name: str) -> bool:
    """Whether a module's name is one of TileLang's or TVM's, which this package provides where it can."""
    return name.partition(".")[0] in (_ALIAS, _PACKAGE, "tvm")


def gathers(name: str) -> bool:
    """Whether the alias is installed and ``tilelang.<name>`` is a module that only it finds: one that collects names from other
    modules, or has another name here."""
    return _FINDER in sys.meta_path and (f"{_ALIAS}.{name}" in _GATHERED or f"{_ALIAS}.{name}" in _MOVED)


def _forget() -> None:
    ours = sys.modules.get("tilelang_npu.compat.flash_attn")
    for name in [name for name, module in sys.modules.items() if name.partition(".")[0] in (_ALIAS, "tvm", *_CARDS)
                 or (name in _REFERENCES and module is ours)]:
        del sys.modules[name]


def installed_elsewhere() -> str | None:
    """Returns the path of an installed TileLang, which cannot be imported while the alias is installed; None if there is none.
    """
    spec = PathFinder.find_spec(_ALIAS)
    return None if spec is None else spec.origin or next(iter(spec.submodule_search_locations or ()), None)
