"""Scripts written for ``torch_npu``, on a torch that knows only the CPU.

While installed, ``import torch_npu`` works, ``torch.npu`` is there, and every device called ``npu`` is the CPU's
memory. torch is not imported by installing: what has to be changed in it is changed when the script imports it, so
kernels on NumPy arrays do not pay for it, and need not have it.

The parts: :mod:`.torch_npu_placement` sends the devices where they belong, :mod:`.torch_npu_device` is ``torch.npu``,
:mod:`.torch_npu_profiler` is ``torch_npu.profiler``, and :mod:`.torch_npu_operators` are the vendor's operators that scripts
use as references. :mod:`.torch_npu_arithmetic` makes the
half-precision products of references as fast as those of single precision.
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
"""What changes torch, in this order: the second wraps methods that the first replaced."""


class _Prepared(Loader):
    """Loads torch as its own loader does, and then puts the device in."""

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
        """The import system's own way of making a module will do."""

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
    """Answers for ``torch_npu``, and has a hand in the loading of ``torch``."""

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
    """Make devices called ``npu`` work, from now on or from the moment when torch is imported. Twice is once."""
    if _FINDER in sys.meta_path:
        return
    _forget()
    sys.meta_path.insert(0, _FINDER)
    if "torch" in sys.modules:
        _prepare()


def uninstall() -> None:
    """Undo :func:`install`. What remains is that torch can parse the device's name: it cannot forget one."""
    if _FINDER not in sys.meta_path:
        return
    sys.meta_path.remove(_FINDER)
    _forget()
    for part in reversed(_PARTS):
        loaded = sys.modules.get(f"tilelang_npu.compat.torch_npu_{part}")
        if loaded is not None:
            loaded.uninstall()
