"""Write TileLang kernels for Ascend NPUs, compile them to HIVM, and run, check and time them on any machine.

Each public name is imported from its module on first use, so ``import tilelang_npu`` costs little more than ``import numpy``:

    import tilelang_npu as tilelang
    import tilelang_npu.language as T

    @tilelang.jit(out_idx=[-1])
    def gemm(M, N, K): ...
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import FunctionType
from typing import TYPE_CHECKING

from tilelang_npu.errors import InternalError, SanitizerError, TileError
from tilelang_npu.errors import door as _door
from tilelang_npu.errors import meant as _meant
from tilelang_npu.module_aliases import ModuleAliases as _ModuleAliases

if TYPE_CHECKING:  # all names: a type checker sees only these, and reports a misspelt one
    from tilelang_npu import autotuner as autotuner
    from tilelang_npu import carver as carver
    from tilelang_npu import intrinsics as intrinsics
    from tilelang_npu import language, math
    from tilelang_npu import layout as layout
    from tilelang_npu import testing as testing
    from tilelang_npu import tvm as tvm
    from tilelang_npu.math import cdiv, next_power_of_2
    from tilelang_npu.runtime.cache import entries as cache
    from tilelang_npu.runtime.cache.entries import disable_cache, enable_cache, is_cache_enabled
    from tilelang_npu.runtime.cache.entries import get_cache_dir as get_cache_dir
    from tilelang_npu.runtime.cache.entries import set_cache_dir as set_cache_dir
    from tilelang_npu.runtime.jit.factory import compile, jit  # noqa: A004  (TileLang's public name is tilelang.compile)
    from tilelang_npu.runtime.jit.factory import lower as lower
    from tilelang_npu.runtime.jit.factory import par_compile as par_compile
    from tilelang_npu.runtime.jit.jit_kernel import JITKernel
    from tilelang_npu.runtime.reports import profiler
    from tilelang_npu.runtime.reports.profiler import Profiler, TensorSupplyType, do_bench
    from tilelang_npu.runtime.settings.log import TileWarning, set_log_level
    from tilelang_npu.runtime.settings.pass_config_keys import PassConfigKey
    from tilelang_npu.runtime.tuning.autotune import AutoTuner, autotune, set_autotune_inputs
    from tilelang_npu.target.dtypes import DType as DataType

    cached = compile

__version__ = "0.1.0"

_MODULES = {
    "autotuner": "runtime.tuning.autotune",
    "cache": "runtime.cache.entries",
    "carver": "compat.carver",
    "intrinsics": "language.layouts",
    "language": "language",
    "layout": "language.layouts",
    "math": "math",
    "profiler": "runtime.reports.profiler",
    "testing": "compat.testing",
    "tvm": "compat.tvm",
}
_NAMES = {
    "AutoTuner": ("runtime.tuning.autotune", "AutoTuner"),
    "DataType": ("target.dtypes", "DType"),
    "JITKernel": ("runtime.jit.jit_kernel", "JITKernel"),
    "PassConfigKey": ("runtime.settings.pass_config_keys", "PassConfigKey"),
    "Profiler": ("runtime.reports.profiler", "Profiler"),
    "TensorSupplyType": ("runtime.reports.profiler", "TensorSupplyType"),
    "TileWarning": ("runtime.settings.log", "TileWarning"),
    "autotune": ("runtime.tuning.autotune", "autotune"),
    "cached": ("runtime.jit.factory", "compile"),
    "cdiv": ("math", "cdiv"),
    "compile": ("runtime.jit.factory", "compile"),
    "disable_cache": ("runtime.cache.entries", "disable_cache"),
    "do_bench": ("runtime.reports.profiler", "do_bench"),
    "enable_cache": ("runtime.cache.entries", "enable_cache"),
    "is_cache_enabled": ("runtime.cache.entries", "is_cache_enabled"),
    "get_cache_dir": ("runtime.cache.entries", "get_cache_dir"),
    "jit": ("runtime.jit.factory", "jit"),
    "lower": ("runtime.jit.factory", "lower"),
    "par_compile": ("runtime.jit.factory", "par_compile"),
    "next_power_of_2": ("math", "next_power_of_2"),
    "set_autotune_inputs": ("runtime.tuning.autotune", "set_autotune_inputs"),
    "set_cache_dir": ("runtime.cache.entries", "set_cache_dir"),
    "set_log_level": ("runtime.settings.log", "set_log_level"),
}

sys.meta_path.insert(0, _ModuleAliases(__name__, _MODULES))  # `from tilelang_npu.autotuner import AutoTuner`

__all__ = [
    "AutoTuner",
    "DataType",
    "InternalError",
    "JITKernel",
    "PassConfigKey",
    "Profiler",
    "SanitizerError",
    "TensorSupplyType",
    "TileError",
    "TileWarning",
    "__version__",
    "autotune",
    "cache",
    "cdiv",
    "compile",
    "disable_cache",
    "do_bench",
    "enable_cache",
    "is_cache_enabled",
    "jit",
    "language",
    "math",
    "next_power_of_2",
    "profiler",
    "set_autotune_inputs",
    "set_log_level",
]


def _load(name: str) -> object:
    if name in _MODULES:
        found: object = import_module(f"{__name__}.{_MODULES[name]}")
    elif name in _NAMES:
        home, attribute = _NAMES[name]
        found = getattr(import_module(f"{__name__}.{home}"), attribute)
        found = _door(found) if isinstance(found, FunctionType) else found
    elif f"{__name__}.compat.alias" in sys.modules and sys.modules[f"{__name__}.compat.alias"].gathers(name):
        return import_module(f"tilelang.{name}")  # a module that exists for scripts of TileLang-Ascend only
    else:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise _meant(AttributeError(msg, name=name, obj=import_module(__name__)))
    globals()[name] = found
    return found


if not TYPE_CHECKING:
    __getattr__ = _door(_load)


def __dir__() -> list[str]:
    return sorted({*__all__, *_MODULES, *_NAMES})
