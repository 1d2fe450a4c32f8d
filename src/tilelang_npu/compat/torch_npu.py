"""Makes scripts that use ``torch_npu`` run with a torch that supports only the CPU.

After ``install()``, ``import torch_npu`` works, ``torch.npu`` exists, and every device named ``npu`` is mapped to the CPU's
memory. ``install()`` does not import torch. torch is changed when the script imports it, so scripts that use NumPy arrays do
not need torch.

The parts: :mod:`.torch_npu_placement` maps devices; :mod:`.torch_npu_device` is ``torch.npu``; :mod:`.torch_npu_profiler` is
``torch_npu.profiler``; :mod:`.torch_npu_distributed` has collectives between cards; :mod:`.torch_npu_operators` contains the
vendor's operators that scripts use as references; :mod:`.torch_npu_arithmetic` replaces operations that torch computes
differently on a card; and :mod:`.torch_cuda` makes ``cuda`` a further name of the device while ``TILELANG_NPU_GPU`` is set.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

from tilelang_npu.runtime.settings import environment

__all__ = ["install", "uninstall", "uninstall_gpu"]

_VENDOR = "torch_npu"
_PARTS = ("torch_npu_placement", "torch_npu_arithmetic", "torch_npu_distributed")
"""The modules that change torch, in the order of installation: the second wraps methods that the first has replaced."""
_GPU_PART = "torch_cuda"
"""The module that changes torch for scripts that were written for a GPU, after the other ones."""


class _Prepared(Loader):
    """Loads torch with its own loader, and then adds the device."""

    def __init__(self, loader: Loader) -> None:
        self.loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self.loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        spec = module.__spec__
        if spec is not None:
            spec.loader = self.loader
        module.__loader__ = self.loader
        self.loader.exec_module(module)
        if _FINDER in sys.meta_path:
            _prepare()


class _Vendor(Loader):
    """Makes the module ``torch_npu``: the reference operators, and ``npu``."""

    def create_module(self, spec: ModuleSpec) -> None:
        """None: the import system makes the module."""

    def exec_module(self, module: ModuleType) -> None:
        import_module("torch")
        operators = import_module("tilelang_npu.compat.torch_npu_operators")
        vars(module).update(
            {name: getattr(operators, name) for name in operators.OPERATORS},
            __version__="2.6.0", __file__=operators.__file__, __getattr__=operators.missing,
            npu=import_module("tilelang_npu.compat.torch_npu_device"),
            profiler=import_module("tilelang_npu.compat.torch_npu_profiler"))
        sys.modules[f"{_VENDOR}.profiler"] = module.profiler


class _TorchNpuFinder(MetaPathFinder):
    """Finds ``torch_npu``, and wraps the loader of ``torch``."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname == _VENDOR:
            return ModuleSpec(fullname, _Vendor(), is_package=True)
        if fullname != "torch":
            return None
        spec = PathFinder.find_spec(fullname, path)
        if spec is not None and spec.loader is not None:
            spec.loader = _Prepared(spec.loader)
        return spec


_FINDER = _TorchNpuFinder()


def _forget() -> None:
    for name in (_VENDOR, f"{_VENDOR}.profiler"):
        sys.modules.pop(name, None)


def _use_one_thread() -> None:
    """Lets torch use one thread in a process that was forked.

    OpenMP's other threads are not in that process, and torch would wait for them. Ranks of a pod are such processes; together
    they use the machine's cores.
    """
    torch = sys.modules.get("torch")
    if torch is not None and _FINDER in sys.meta_path:
        torch.set_num_threads(1)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_use_one_thread)


def _prepare() -> None:
    """Changes torch; parts that have changed it already do nothing."""
    for part in (*_PARTS, *([_GPU_PART] if environment.GPU.is_on() else [])):
        import_module(f"{__package__}.{part}").install()


def install() -> None:
    """Maps devices named ``npu``, and ``cuda`` while ``TILELANG_NPU_GPU`` is set, to the CPU: at once if torch is imported,
    otherwise when it is. Calling it again has no effect.
    """
    if _FINDER not in sys.meta_path:
        _forget()
        sys.meta_path.insert(0, _FINDER)
    if "torch" in sys.modules:
        _prepare()


def uninstall_gpu() -> None:
    """Undoes what :func:`install` did for devices named ``cuda``."""
    _uninstall_part(_GPU_PART)


def _uninstall_part(part: str) -> None:
    loaded = sys.modules.get(f"{__package__}.{part}")
    if loaded is not None:
        loaded.uninstall()


def uninstall() -> None:
    """Undoes :func:`install`, except that torch still accepts ``npu`` as a device name, which cannot be removed again."""
    if _FINDER not in sys.meta_path:
        return
    sys.meta_path.remove(_FINDER)
    _forget()
    for part in (_GPU_PART, *reversed(_PARTS)):
        _uninstall_part(part)
