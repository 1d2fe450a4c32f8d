"""The keys of ``pass_configs``, including those of other versions of TileLang.

``PassConfigKey`` has a member for every key that a branch of TileLang-Ascend, or a GPU kernel that is usually ported, sets.
Other keys are accepted too: ``PassConfigKey.TL_NEW_KEY`` and ``PassConfigKey("tl.new_key")`` give a key that has no effect, and
the compiler warns of it (:func:`unknown_keys`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from enum import Enum, EnumMeta

from tilelang_npu.errors import Location, TileError
from tilelang_npu.runtime.settings.argument_location import location_of_word

_MEMBER = re.compile(r"[A-Z][A-Z0-9]*(_[A-Z0-9]+)+")
"""The form of member names: words in capitals with underscores between them."""

_GPU_KEYS = {
    "TL_AST_PRINT_ENABLE": ("tl.ast_print_enable", "prints the program after each pass"),
    "TL_DISABLE_BUFFER_INIT_CHECK": ("tl.disable_buffer_init_check", "silences warnings of reads before the first write"),
    "TL_DISABLE_DATA_RACE_CHECK": ("tl.disable_data_race_check", "switches the search for races between threads off"),
    "TL_DISABLE_LOOP_UNSWITCHING": ("tl.disable_loop_unswitching", "keeps branches inside of their loops"),
    "TL_DISABLE_PRELOWER_SEMANTIC_CHECK": ("tl.disable_prelower_semantic_check", "skips checks of the traced program"),
    "TL_DUMP_IR_DIR": ("tl.dump_ir_path", "names the folder for the programs that tl.enable_dump_ir writes"),
    "TL_DYNAMIC_VECTORIZE_SIZE_BITS": ("tl.dynamic_vectorize_size_bits", "sets the width of vector accesses to dynamic shapes"),
    "TL_EMIT_LINE_DIRECTIVES": ("tl.emit_line_directives", "puts lines of the Python source into the generated code"),
    "TL_ENABLE_AUTO_SCHEDULE": ("tl.enable_auto_schedule", "lets the compiler schedule statements by itself"),
    "TL_ENABLE_AUTO_WARP_SPECIALIZATION": (
        "tl.enable_auto_warp_specialization", "names a scheduler that assigns work to warps"),
    "TL_ENABLE_DUMP_IR": ("tl.enable_dump_ir", "writes the program after each pass to a file"),
    "TL_ENABLE_FP32X2_REDUCTION": ("tl.enable_fp32x2_reduction", "sums two float32 in one instruction"),
    "TL_ENABLE_PTXAS_VERBOSE_OUTPUT": ("tl.enable_ptxas_verbose_output", "prints what NVIDIA's assembler reports"),
    "TL_ENABLE_REDUCER_PLAN_VERBOSE": ("tl.enable_reducer_plan_verbose", "logs how reductions are divided among threads"),
    "TL_ENABLE_VECTORIZE_PLANNER_VERBOSE": ("tl.enable_vectorize_planner_verbose", "logs how wide accesses are vectorised"),
    "TL_IF_STMT_BINDING_INLINE_REPLAYABLE_BINDS": (
        "tl.if_stmt_binding_inline_replayable_binds", "computes scalars of a guarded body at each use"),
    "TL_LAYOUT_COST_MODEL": ("tl.layout_cost_model", "chooses how register layouts are compared"),
    "TL_LAYOUT_VISUALIZATION_ENABLE": ("tl.layout_visualization_enable", "draws the inferred layouts"),
    "TL_LAYOUT_VISUALIZATION_FORMATS": ("tl.layout_visualization_formats", "names the file formats of drawn layouts"),
    "TL_LOOP_UNSWITCHING_ALLOW_NON_TRIVIAL_ELSE": (
        "tl.loop_unswitching_allow_non_trivial_else", "moves branches out of loops also where both sides do work"),
    "TL_PASS_PROFILE": ("tl.pass_profile", "prints the time that each pass takes"),
    "TL_PASS_PROFILE_THRESHOLD_MS": ("tl.pass_profile_threshold_ms", "leaves out passes that are faster than this"),
    "TL_REDUCER_FORCE_BASELINE": ("tl.reducer_force_baseline", "lets every thread take part in every reduction"),
    "TL_STORAGE_REWRITE_DETECT_INPLACE": (
        "tl.storage_rewrite_detect_inplace", "lets a temporary share the memory of the value that it is computed from"),
}
"""Keys of TileLang for GPUs that are not members: by member name, the key and its effect there."""
_ASCEND_KEYS = {
    "TL_ASCEND_AUTO_SYNC_VS": (
        "tl.ascend_auto_sync_vs",
        "orders the scalar unit and the Vector unit, as tl.ascend_auto_sync already does for all pipes here"),
    "TL_ASCEND_EXCEPTION_DUMP": (
        "tl.ascend_exception_dump", "writes the tensors of a kernel that fails on the device to files"),
    "TL_ASCEND_INJECT_TMP_BUFFER": (
        "tl.ascend_inject_tmp_buffer",
        "lets the compiler allocate the scratch memory of operations without tmp, as always here"),
    "TL_ASCEND_PTO_USE_PIPE_IN_CV_COPY": (
        "tl.ascend_pto_use_pipe_in_cv_copy",
        "copies between the cores on the chip, not through global memory; here the paths of the chip decide"),
    "TL_ASCEND_VECTOR_MASK_REUSE": (
        "tl.ascend_vector_mask_reuse", "leaves out settings of the vector mask that repeat the one before"),
}
"""Keys of newer versions of TileLang-Ascend that are not members: by member name, the key and its effect there."""
_FOREIGN_KEYS = {**_GPU_KEYS, **_ASCEND_KEYS}
_RENAMED = "tirx."
"""The prefix that newer versions of TVM have in place of ``tir.``."""


class _OpenEnum(EnumMeta):
    """The metaclass of an enum of strings that creates a missing member when a name in capitals is looked up."""

    def __getattr__(cls, name: str) -> PassConfigKey:
        try:
            return cls[name]
        except KeyError:
            raise AttributeError(f"{cls.__name__} has no member {name!r}") from None

    def __getitem__(cls, name: str) -> PassConfigKey:  # type: ignore[override]  # for this one enum
        found = cls.__dict__.get("_member_map_", {}).get(name)
        if found is None and _MEMBER.fullmatch(name):
            family, _, rest = name.lower().partition("_")
            found = cls(_FOREIGN_KEYS[name][0] if name in _FOREIGN_KEYS else f"{family}.{rest}")
        if found is None:
            raise KeyError(name)
        made: PassConfigKey = found
        return made


class PassConfigKey(str, Enum, metaclass=_OpenEnum):
    """The keys that ``pass_configs`` takes on either branch of TileLang-Ascend. Each key equals its plain string, such as
    ``"tl.ascend_auto_sync"``, which ``pass_configs`` accepts too.
    """

    # Keys with an effect. The first takes names of optimisations, the others True or False.
    TL_DISABLE = "tl.disable"
    TL_ASCEND_AUTO_CV_COMBINE = "tl.ascend_auto_cv_combine"
    TL_ASCEND_AUTO_CV_SYNC = "tl.ascend_auto_cross_core_sync"
    TL_ASCEND_AUTO_SYNC = "tl.ascend_auto_sync"
    TL_ASCEND_MEMORY_PLANNING = "tl.ascend_memory_planning"
    TL_ASCEND_TAIL_MASK = "tl.ascend_tail_mask"
    NPUIR_ENABLE_AUTO_MULTI_BUFFER = "npuir.enable_auto_multi_buffer"
    NPUIR_DISABLE_HIVM_AUTO_INJECT_SYNC = "npuir.disable_hivm_auto_inject_sync"
    # Keys without an effect on an Ascend chip, here and in TileLang-Ascend.
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
    # Keys of GPU code generators, in kernels that were written for a GPU.
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

    @classmethod
    def _missing_(cls, value: object) -> PassConfigKey | None:
        """Returns the key for a string that no member has. It is made once, and compares equal to the string."""
        if not isinstance(value, str):
            return None
        made = str.__new__(cls, value)
        made._name_ = next((name for name, (key, _) in _FOREIGN_KEYS.items() if key == value), value.replace(".", "_").upper())
        made._value_ = value
        return cls._value2member_map_.setdefault(value, made)  # type: ignore[return-value]  # all values of this map are keys


def known_key(spelled: object) -> PassConfigKey | None:
    """Returns the declared member of :class:`PassConfigKey` for a key of ``pass_configs``; None if no member has this value.

    Args:
        spelled: a key as the user wrote it: a member, a string, or any other object.
    """
    return _BY_VALUE.get(spelled.value if isinstance(spelled, PassConfigKey) else spelled) if isinstance(spelled, str) else None


_BY_VALUE = {key.value: key for key in PassConfigKey}


def unknown_keys(pass_configs: Mapping[PassConfigKey | str, object] | None, at: Location | None,
                 effective: str) -> Iterator[TileError]:
    """Yields a warning (T704) for each key that is not a declared member of ``PassConfigKey``.

    The warning's help says what the key does in TileLang for GPUs or in newer versions of TileLang-Ascend, which
    key was probably meant, or which keys have an effect.

    Args:
        pass_configs: the ``pass_configs`` that the user wrote.
        at: the source location of the decorator or call with these ``pass_configs``.
        effective: the names of the keys that have an effect, separated by commas.
    """
    for spelled in pass_configs or ():
        if known_key(spelled) is not None:
            continue
        name, value = (spelled.name, spelled.value) if isinstance(spelled, PassConfigKey) else (repr(spelled), spelled)
        advice = _purpose(value) or _guess(spelled) or f"the keys with an effect are {effective}"
        yield TileError(f"unknown key {name} in pass_configs has no effect", code="T704",
                        location=location_of_word(name.strip("'"), at), help=advice)


def _purpose(key: object) -> str:
    """Returns a text that says what a key does in TileLang for GPUs or in TileLang-Ascend; empty if its effect is not known."""
    for where, keys in (("TileLang for GPUs", _GPU_KEYS), ("TileLang-Ascend", _ASCEND_KEYS)):
        for known, purpose in keys.values():
            if known == key:
                return f"in {where} it {purpose}"
    if isinstance(key, str) and key.startswith(_RENAMED) and (older := key.replace(_RENAMED, "tir.", 1)) in _BY_VALUE:
        return f"it is the name of {older!r} in newer versions of TVM, which has no effect on an Ascend chip either"
    return ""


def _guess(spelled: object) -> str:
    """Returns the question whether the member with the nearest spelling is meant; empty if no member is near."""
    by_name = {key.name: key for key in PassConfigKey}
    if isinstance(spelled, PassConfigKey):
        near = get_close_matches(spelled.name, by_name, n=1)
        return f"did you mean {near[0]}?" if near else ""
    near = get_close_matches(str(spelled), [*_BY_VALUE, *by_name], n=1)
    return f"did you mean {(by_name[near[0]].value if near[0] in by_name else near[0])!r}?" if near else ""
