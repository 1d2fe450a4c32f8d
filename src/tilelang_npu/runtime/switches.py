"""Compiler switches: the keys of ``pass_configs``, and the one place where their values are checked.

A switch takes effect, or is a documented no-op of TileLang-Ascend (the GPU and TIR keys that its examples carry along), or is
refused. What a switch does is the business of the pass that reads it.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import TYPE_CHECKING

from tilelang_npu.errors import Location, TileError
from tilelang_npu.runtime import environment
from tilelang_npu.runtime.pointing import find

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

__all__ = ["PassConfigKey", "check_kernel", "disabled", "resolve"]


class PassConfigKey(str, Enum):
    """Every key that ``pass_configs`` takes on either branch of TileLang-Ascend. The plain strings are accepted too."""

    # These decide what the compiler does. The first takes names of optimisations, the others True or False.
    TL_DISABLE = "tl.disable"
    TL_ASCEND_AUTO_CV_COMBINE = "tl.ascend_auto_cv_combine"
    TL_ASCEND_AUTO_CV_SYNC = "tl.ascend_auto_cross_core_sync"
    TL_ASCEND_AUTO_SYNC = "tl.ascend_auto_sync"
    TL_ASCEND_MEMORY_PLANNING = "tl.ascend_memory_planning"
    NPUIR_ENABLE_AUTO_MULTI_BUFFER = "npuir.enable_auto_multi_buffer"
    NPUIR_DISABLE_HIVM_AUTO_INJECT_SYNC = "npuir.disable_hivm_auto_inject_sync"
    # These have no effect on an Ascend chip, here as upstream.
    TL_ENABLE_PLAN_AND_UPDATE_BUFFER_ALLOCATION = "tl.enable_plan_and_update_buffer_allocation"
    TL_SIMPLIFY = "tl.Simplify"
    TL_DYNAMIC_ALIGNMENT = "tl.dynamic_alignment"
    TL_DISABLE_DYNAMIC_TAIL_SPLIT = "tl.disable_dynamic_tail_split"
    TL_DISABLE_WARP_SPECIALIZED = "tl.disable_warp_specialized"
    TL_DISABLE_TMA_LOWER = "tl.disable_tma_lower"
    TL_DISABLE_SAFE_MEMORY_ACCESS = "tl.disable_safe_memory_legalize"
    TL_CONFIG_INDEX_BITWIDTH = "tl.config_index_bitwidth"
    TL_DEBUG_MERGE_SHARED_MEMORY_ALLOCATIONS = "tl.debug_merge_shared_memory_allocations"
    TIR_ENABLE_EQUIV_TERMS_IN_CSE = "tir.enable_equiv_terms_in_cse_tir"
    TIR_DISABLE_CSE = "tir.disable_cse_tir"
    TIR_SIMPLIFY = "tir.Simplify"
    TIR_DISABLE_STORAGE_REWRITE = "tir.disable_storage_rewrite"
    TIR_DISABLE_VECTORIZE = "tir.disable_vectorize"
    TIR_USE_ASYNC_COPY = "tir.use_async_copy"
    TIR_ENABLE_DEBUG = "tir.enable_debug"
    TIR_MERGE_STATIC_SMEM = "tir.merge_static_smem"
    TIR_ADD_LOWER_PASS = "tir.add_lower_pass"
    TIR_NOALIAS = "tir.noalias"
    CUDA_KERNELS_OUTPUT_DIR = "cuda.kernels_output_dir"
    # These tell a GPU's code generator what to do, and come along with kernels that were written for one.
    TL_ENABLE_FAST_MATH = "tl.enable_fast_math"
    TL_PTXAS_REGISTER_USAGE_LEVEL = "tl.ptxas_register_usage_level"
    TL_DEVICE_COMPILE_FLAGS = "tl.device_compile_flags"
    TL_DISABLE_WGMMA = "tl.disable_wgmma"
    TL_DISABLE_VECTORIZE_256 = "tl.disable_vectorize_256"
    TL_ENABLE_ASYNC_COPY = "tl.enable_async_copy"
    TL_ENABLE_LOWER_LDGSTG = "tl.enable_lower_ldgstg"
    TL_ENABLE_LOWER_LDGSTG_PREDICATED = "tl.enable_lower_ldgstg_predicated"
    TL_ENABLE_AGGRESSIVE_SHARED_MEMORY_MERGE = "tl.enable_aggressive_shared_memory_merge"
    TL_DISABLE_SHARED_MEMORY_REUSE = "tl.disable_shared_memory_reuse"
    TL_DISABLE_SHUFFLE_ELECT = "tl.disable_shuffle_elect"
    TL_DISABLE_THREAD_STORAGE_SYNC = "tl.disable_thread_storage_sync"
    TL_DISABLE_OUT_OF_BOUND_WARNING = "tl.disable_out_of_bound_warning"
    TL_FORCE_LET_INLINE = "tl.force_let_inline"


_Key = PassConfigKey
_COMBINE, _CV_SYNC = _Key.TL_ASCEND_AUTO_CV_COMBINE, _Key.TL_ASCEND_AUTO_CV_SYNC
_BY_VALUE = {key.value: key for key in PassConfigKey}
# The switches of each dialect, with what holds in the other one, where nobody can switch it.
_EFFECTIVE = {
    "ascendc": {_COMBINE: True, _CV_SYNC: True, _Key.TL_ASCEND_AUTO_SYNC: True, _Key.TL_ASCEND_MEMORY_PLANNING: True},
    "npuir": {_Key.NPUIR_ENABLE_AUTO_MULTI_BUFFER: True, _Key.NPUIR_DISABLE_HIVM_AUTO_INJECT_SYNC: False},
}
_HOME = {key: dialect for dialect, keys in _EFFECTIVE.items() for key in keys}


def resolve(
    pass_configs: Mapping[PassConfigKey | str, object] | None, dialect: str, at: Location | None
) -> dict[str, bool]:
    """The switches that the compiler is to see, by their string keys; what has no effect anywhere is left out.

    Args:
        pass_configs: what the user wrote.
        dialect: the dialect of the kernel; each has its own switches.
        at: the decorator or call that carries it, for the errors.

    Raises:
        TileError: T704 unknown key, T705 a value of the wrong type, T720 a switch that could not take effect.
    """
    if pass_configs is None:
        return {}
    if not isinstance(pass_configs, Mapping):
        msg = f"pass_configs is a {type(pass_configs).__name__}, not a dict"
        raise TileError(msg, code="T705", location=find("pass_configs", at),
                        help="write pass_configs={tilelang.PassConfigKey.TL_ASCEND_AUTO_SYNC: True}")
    switches: dict[str, bool] = {}
    for spelled, value in pass_configs.items():
        key = _key(spelled, at)
        if key not in _HOME:  # without an effect, or for ``disabled``
            continue
        if not isinstance(value, bool) and value not in (0, 1):
            msg = f"{key.name} is a switch; {value!r} is neither True nor False"
            raise TileError(msg, code="T705", location=find(key.name, at), help="set it to True or False")
        switches[key.value] = bool(value)
    _check(switches, dialect, at)
    return switches


def disabled(pass_configs: Mapping[PassConfigKey | str, object] | None, at: Location | None) -> tuple[str, ...]:
    """The optimisations that are off: those that ``tl.disable`` names and those that ``TILELANG_NPU_WITHOUT`` does.

    Args:
        pass_configs: what the user wrote, as ``resolve`` has checked it.
        at: the decorator or call that carries it, for the errors.

    Raises:
        TileError: T705 no list of names, T712 a name of no optimisation, T720 slots that are asked for and switched off.
    """
    from tilelang_npu.transforms.ir.optimisations import checked

    names: list[str] = [name.strip() for name in environment.WITHOUT.text().split(",") if name.strip()]
    keys = {_key(spelled, at): value for spelled, value in (pass_configs or {}).items()}
    value = keys.get(_Key.TL_DISABLE, [])
    where = find(_Key.TL_DISABLE.value, at)
    listed = [value] if isinstance(value, str) else value
    if not isinstance(listed, (list, tuple, set, frozenset)) or not all(isinstance(name, str) for name in listed):
        msg = f"{_Key.TL_DISABLE.value} takes names of optimisations; {value!r} is no list of them"
        raise TileError(msg, code="T705", location=where, help='write "tl.disable": ["banks"]')
    if "multi-buffer" in listed and keys.get(_Key.NPUIR_ENABLE_AUTO_MULTI_BUFFER):
        msg = f"{_Key.TL_DISABLE.value} switches off what {_Key.NPUIR_ENABLE_AUTO_MULTI_BUFFER.name} switches on"
        raise TileError(msg, code="T720", location=where, help="remove one of them")
    for name in listed:
        checked([name], find(name, at))
    return checked([*names, *listed], where)


def check_kernel(switches: Mapping[str, bool], module: ModuleOp, at: Location | None) -> TileError | None:
    """What a kernel makes of the switches: flags between the cores, where the compiler does not split the kernel, need cores
    that the author named.

    Returns:
        What the author should know of a switch that changes nothing because the kernel does the same by hand.

    Raises:
        TileError: T720, a switch could not take effect.
    """
    if not switches.get(_CV_SYNC.value) or switches.get(_COMBINE.value):
        return None
    from tilelang_npu.dialects import hivm, tile

    ops = list(module.walk())
    if not any(isinstance(op, tile.OnCoreOp) for op in ops):
        raise TileError(
            f"{_CV_SYNC.name} has no effect without {_COMBINE.name} in a kernel without T.Scope", code="T720",
            location=find(_CV_SYNC.name, at),
            notes=["flags are inserted where Cube and Vector meet; nothing here says which work is whose"],
            help=f"add {_COMBINE.name}: True, or remove {_CV_SYNC.name}")
    if any(isinstance(op, (hivm.SyncBlockSetOp, hivm.SyncBlockWaitOp)) for op in ops):
        return TileError(f"{_CV_SYNC.name} changes nothing: the kernel sets the flags between its cores by hand", code="T720",
                         location=find(_CV_SYNC.name, at), help="remove the switch, or the flags")
    return None


def _key(spelled: object, at: Location | None) -> PassConfigKey:
    if isinstance(spelled, PassConfigKey):
        return spelled
    key = _BY_VALUE.get(spelled) if isinstance(spelled, str) else None
    if key is not None:
        return key
    known = [*_BY_VALUE, *(key.name for key in PassConfigKey)]
    from difflib import get_close_matches

    near = get_close_matches(str(spelled), known, n=1)
    msg = f"unknown key {spelled!r} in pass_configs"
    advice = f"did you mean {near[0]!r}?" if near else f"the keys with an effect are {_listed()}"
    raise TileError(msg, code="T704", location=find(str(spelled), at), help=advice)


def _listed() -> str:
    return ", ".join(sorted(key.name for key in _HOME))


def _check(switches: Mapping[str, bool], dialect: str, at: Location | None) -> None:
    """Refuse what does nothing: a switch of the other dialect that asks for another thing than holds here, and a clash."""
    for value, wanted in switches.items():
        key = _BY_VALUE[value]
        home = _HOME[key]
        if home != dialect and _EFFECTIVE[home][key] != wanted:
            msg = f"{key.name}: {wanted} has no effect in the {dialect} dialect"
            raise TileError(msg, code="T720", location=find(key.name, at),
                            help=f"remove it, or write the kernel for target={home!r}, whose switch it is")
