"""Scripts written for ``torch_npu``, with a torch that has only the CPU.

While installed, ``import torch_npu`` works, ``torch.npu`` exists, and every device called ``npu`` is the CPU's memory.
Installing does not import torch: torch is changed when the script imports it, so that kernels on NumPy arrays do not need it.

The parts: :mod:`.torch_npu_placement` maps devices, :mod:`.torch_npu_device` is ``torch.npu``, :mod:`.torch_npu_profiler` is
``torch_npu.profiler``, :mod:`.torch_npu_operators` has the vendor's operators that scripts use as references, and
:mod:`.torch_npu_arithmetic` makes half-precision products of references as fast as those of single precision.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

__all__ = ["install", "uninstall"]

_VENDOR = "torch_npu"
_PARTS = ("placement", "arithmetic")
"""The modules that change torch, in order: the second wraps methods that the first has replaced."""


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


def _prepare() -> None:
    for part in _PARTS:
        import_module(f"tilelang_npu.compat.torch_npu_{part}").install()


def install() -> None:
    """Makes devices called ``npu`` work, now or when torch is imported. Idempotent."""
    if _FINDER in sys.meta_path:
        return
    _forget()
    sys.meta_path.insert(0, _FINDER)
    if "torch" in sys.modules:
        _prepare()


def uninstall() -> None:
    """Undoes :func:`install`. torch still parses the device's name, which cannot be removed."""
    if _FINDER not in sys.meta_path:
        return
    sys.meta_path.remove(_FINDER)
    _forget()
    for part in reversed(_PARTS):
        loaded = sys.modules.get(f"tilelang_npu.compat.torch_npu_{part}")
        if loaded is not None:
            loaded.uninstall()
