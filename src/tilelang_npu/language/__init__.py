"""The language in which kernels are written: ``import tilelang_npu.language as T``.

Importing this package is fast. Functions that only the body of a kernel uses (copies, matrix and vector operations) are
imported when a trace first uses them. Each elementwise operation of the op table is a function of ``T`` under each of its
names, or of ``T.tile`` if the name begins with ``tile.``. A name that does not exist is an error with a suggestion; a name of
TileLang that this
package does not support is an error at the statement that uses it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from importlib import import_module
from types import ModuleType
from typing import Any

from tilelang_npu.dispatch import dispatched as _dispatched
from tilelang_npu.errors import door as _door
from tilelang_npu.errors import doors as _doors
from tilelang_npu.language import eager, elements, functions, launch, layouts, scalar, types, unsupported
from tilelang_npu.language.elements import TOKENS, ScalarType
from tilelang_npu.language.gpu_arguments import note_gpu_arguments
from tilelang_npu.language.types import Tensor
from tilelang_npu.language.unsupported import NAMES, Unsupported, unknown
from tilelang_npu.plugin_loading import load_plugins
from tilelang_npu.traced import symbols

_LOADED: dict[ModuleType, tuple[str, ...]] = {
    eager: ("const", "empty"),
    elements: ("infinity",),
    functions: ("Macro", "PrimFunc", "macro", "prim_func"),
    launch: (
        "Else", "If", "Kernel", "Parallel", "Persistent", "Pipelined", "Scope", "SimdVF", "SimtVF", "Then", "func_attr",
        "grid", "loop_break", "parallel", "rs", "serial", "unroll", "vectorized"),
    layouts: ("Fragment", "Layout"),
    scalar: (
        "And", "Cast", "Not", "Or", "Select", "abs", "acos", "acosh", "align_up", "asin", "asinh", "atan", "atan2", "atanh",
        "bitwise_and", "bitwise_not", "bitwise_or", "bitwise_xor", "cast", "ceil", "ceildiv", "clamp", "clz", "copysign",
        "cos", "cosh", "erf", "exp", "exp2", "exp10", "fabs", "floor", "floordiv", "floormod", "hypot", "if_then_else",
        "isfinite", "isinf", "isnan", "log", "log1p", "log2", "log10", "max", "max_value", "min", "min_value", "nearbyint",
        "popcount", "pow", "reinterpret", "round", "rsqrt", "shift_left", "shift_right", "sigmoid", "sin", "sinh", "sqrt",
        "tan", "tanh", "trunc", "truncdiv", "truncmod"),
    symbols: ("Sym", "dynamic", "symbolic"),
    types: ("Ref", "StridedTensor", "Tensor"),
    unsupported: (),
}
"""The names that are imported together with this package, by the modules that define them."""
for _module, _names in _LOADED.items():
    _doors(vars(_module))
    for _name in _names:
        if _module is scalar:  # a function of scalars is also called by other functions of its module
            vars(scalar)[_name] = _dispatched(_name, vars(scalar)[_name], note_gpu_arguments)
        globals()[_name] = vars(_module)[_name]

for _name in ("exp", "exp10", "log", "log2", "log10", "sin", "cos", "tan"):  # a GPU's approximation of the function
    globals()[f"__{_name}"] = globals()[_name]

Buffer = FragmentBuffer = SharedBuffer = LocalBuffer = Tensor
globals().update(TOKENS)
dtype = ScalarType
Serial = launch.serial

_HOMES: dict[str, tuple[str, str]] = {
    **{name: ("allocate", name) for name in (
        "alloc_shared", "alloc_fragment", "alloc_frag", "alloc_ub", "alloc_L1", "alloc_L0A", "alloc_L0B", "alloc_L0C",
        "alloc_local", "alloc_var", "alloc_global",
        "annotate_address", "annotate_layout", "reinterpretcast")},
    **{name: ("block_scaled", name) for name in ("alloc_L1_scale_a", "alloc_L1_scale_b", "gemm_mx", "mma_mx")},
    **{name: ("matrix", name) for name in ("gemm", "gemm_v0", "gemm_v0_fixp", "npuir_dot", "mma", "GemmWarpPolicy")},
    **{name: ("cube_moves", name) for name in (
        "copy_pa", "load_nd2nz", "npuir_load_nd2nz", "store_fixpipe", "npuir_store_fixpipe", "store_nz2nd",
        "npuir_store_nz2nd")},
    "printf": ("debug", "printf"), "dump_tensor": ("debug", "dump_tensor"),
    "set_deq_scale": ("dequantise", "set_deq_scale"),
    **{name: ("atomic_mode", name) for name in ("set_atomic", "set_atomic_add", "set_atomic_none")},
    "tile.datacachecleanandinvalid_experiment": ("sync", "datacachecleanandinvalid_experiment"),
    "annotate_safe_value": ("safe_values", "annotate_safe_value"),
    "npu_gemm": ("matrix", "mma"), "use_swizzle": ("swizzle", "use_swizzle"),
    **{name: ("sync", name) for name in (
        "barrier_all", "pipe_barrier", "set_flag", "wait_flag", "set_cross_flag", "wait_cross_flag", "sync_all",
        "sync_block_set", "sync_block_wait", "init_flag", "clear_flag", "block_barrier", "subblock_barrier")},
    **{name: ("reduction", name) for name in (
        "reduce", "reduce_sum", "reduce_max", "reduce_min", "reduce_abssum", "reduce_absmax", "reduce_prod", "reduce_any",
        "reduce_all", "reduce_bitand", "reduce_bitor", "reduce_bitxor", "reduce_with_index")},
    "im2col": ("patches", "im2col"), "c2d_im2col": ("patches", "im2col"),
    "tile.im2col": ("patches", "load_patches"),
    "get_thread_binding": ("threads", "get_thread_binding"), "get_thread_bindings": ("threads", "get_thread_bindings"),
    **{name: ("reducers", name) for name in ("alloc_reducer", "reducer_init", "reducer_update", "finalize_reducer")},
    **{name: ("gpu_hints", name) for name in (
        "annotate_compile_flags", "annotate_consumer_reg_alloc", "annotate_l2_hit_ratio", "annotate_min_blocks_per_sm",
        "annotate_pass_configs", "annotate_producer_reg_dealloc", "annotate_restrict_buffers", "assume", "async_copy",
        "cp_async_wait_group", "dec_max_nreg", "device_assert", "disable_warp_group_reg_alloc", "fence_proxy_async",
        "inc_max_nreg", "no_set_max_nreg", "pdl_sync", "pdl_trigger", "ptx_commit_group", "ptx_wait_group", "set_max_nreg",
        "sync_threads", "sync_warp", "warpgroup_fence_operand")},
    "sync_grid": ("sync", "sync_all"),
    **{name: ("signals", name) for name in (
        "shmem_barrier", "shmem_barrier_all", "shmem_fence", "shmem_mte_quiet", "shmem_quiet", "shmem_signal_op",
        "shmem_signal_wait_until")},
    "copy": ("movement", "copy"), "npuir_copy": ("movement", "copy"), "reshape": ("movement", "reshape"),
    "npuir_reshape": ("movement", "reshape"), "view": ("movement", "view_of"), "view_experiment": ("movement", "view_of"),
    "assert_": ("scalar", "assert_"),
    "meta_var": ("scalar", "meta_var"), "evaluate": ("scalar", "evaluate"),
    "any_of": ("logical", "any_of"), "all_of": ("logical", "all_of"),
    "vbitcast": ("movement", "vbitcast"), "npuir_bitcast": ("movement", "npuir_bitcast"),
    "npuir_reduce": ("reduction", "reduce"),
    "fill": ("vector", "fill"), "npuir_fill": ("vector", "fill"), "clear": ("vector", "clear"),
    "npuir_clear": ("vector", "clear"), "vbrc": ("vector", "vbrc"), "npuir_brc": ("vector", "vbrc"),
}
_TILE: dict[str, str] = {
    "fill": "tile_fill", "clear": "tile_clear", "cast": "tile_cast", "broadcast": "tile_broadcast"}


def _find(name: str) -> Any:  # a function, a class or a value
    """The value of a name that is not loaded yet, as ``copy`` or ``tile.add``; None where there is none. For a name that is not
    known, plug-ins are loaded."""
    found = _look_up(name)
    return _look_up(name) if found is None and load_plugins() else found


def _look_up(name: str) -> Any:  # as _find gives
    found: Any
    if name == "vmi":
        return import_module(f"{__name__}.vmi")
    if name in _HOMES:
        home, attribute = _HOMES[name]
        module = import_module(f"{__name__}.{home}")
        _doors(vars(module))
        found = getattr(module, attribute)
    elif name.startswith("tile.") and name.removeprefix("tile.") in _TILE:
        found = _door(getattr(import_module(f"{__name__}.vector"), _TILE[name.removeprefix("tile.")]))
    else:
        for home, names in (("vector", _vector_names), ("repeats", _repeat_names), ("structured", _structured_names)):
            if name in names():
                found = _door(import_module(f"{__name__}.{home}").function(name))
                break
        else:
            found = Unsupported(name) if name in NAMES or name in _unsupported_entries() else None
    return _dispatched(name, found, note_gpu_arguments)


def _vector_names() -> frozenset[str]:
    """Names of elementwise operations of the op table that are functions of ``T``."""
    from tilelang_npu import ops

    return frozenset(name for op in (*ops.elementwise(), *ops.composites()) if op.outputs == 1
                     for name in (op.name, *op.aliases) if name not in ("cast", "sigmoid", "round"))


def _repeat_names() -> frozenset[str]:
    """Names of functions of ``T`` that take repeats and strides, or a number of elements."""
    from tilelang_npu.ops.repeats import NAMES

    return NAMES


def _structured_names() -> frozenset[str]:
    """Names of structured operations of the op table, and of :data:`_STRUCTURED`."""
    from tilelang_npu import ops

    entries = (op for op in ops.operations().values() if isinstance(op, ops.Structured) and op.aliases)
    own = frozenset(name for op in entries for name in (op.aliases if op.is_custom else (op.name, *op.aliases)))
    return (own | _STRUCTURED) - _repeat_names()


def is_taken(name: str) -> bool:
    """Whether ``T`` has a supported function or value with a name, such as ``copy`` or ``tile.add``."""
    if name.startswith("tile."):
        return name.removeprefix("tile.") in dir(tile)
    found = globals().get(name)
    return name in __dir__() or (found is not None and not isinstance(found, Unsupported))


def forget(names: Iterable[str]) -> None:
    """Makes the next use of these names look them up in the op table again, after an operation was registered or removed."""
    for home in ("vector", "structured"):
        loaded = sys.modules.get(f"{__name__}.{home}")
        if loaded is not None:
            loaded.function.cache_clear()
    for name in names:
        if name.startswith("tile."):
            vars(tile).pop(name.removeprefix("tile."), None)
        elif name not in __all__:
            globals().pop(name, None)


def _functions() -> tuple[str, ...]:
    """Names of the functions that are loaded when they are first used."""
    return (*_vector_names(), *_structured_names(), *_repeat_names(), *_HOMES)


_STRUCTURED = frozenset((
    "print", "npuir_print", "vextract_pairs", "atomic_max", "atomic_min", "tile.atomic_add", "tile.row_expand_mul_nd",
    *(f"tile.row_expand_{name}{suffix}" for name in ("mul", "sub", "div") for suffix in ("", "_experiment")),
    *(prefix + name for name in ("atomic_add", "atomic_addx4", "atomic_addx2") for prefix in ("", "v", "npuir_"))))
"""Names of functions in ``structured`` that are not an entry of the op table."""


def _unsupported_entries() -> frozenset[str]:
    """Names of operations of the op table with several destinations."""
    from tilelang_npu import ops

    return frozenset(name for op in ops.elementwise() if op.outputs != 1 for name in (op.name, *op.aliases))


@_door
class _TileNamespace:
    """``T.tile``: vector operations with the destination first."""

    def __getattr__(self, name: str) -> Any:  # as _find gives
        if name.startswith("__"):
            raise AttributeError(name)
        found = _find(f"tile.{name}")
        if found is None:
            raise unknown(f"tile.{name}", dir(self))
        setattr(self, name, found)
        return found

    def __dir__(self) -> list[str]:
        return sorted({*_TILE, *(name.removeprefix("tile.") for name in _functions() if name.startswith("tile."))})


tile = ascend_tile = _TileNamespace()


@_door
def __getattr__(name: str) -> Any:  # as _find gives
    if name.startswith("__"):
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    found = _find(name)
    if found is None:
        raise unknown(name, [known for known in __dir__() if not known.startswith("_")])
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*__all__, *TOKENS, *(name for name in _functions() if not name.startswith("tile."))})


__all__ = sorted({*(name for names in _LOADED.values() for name in names), *_HOMES, "Buffer", "FragmentBuffer", "LocalBuffer",
                  "Serial", "SharedBuffer", "ascend_tile", "dtype", "tile", "vmi"} - {name for name in _HOMES if "." in name})
