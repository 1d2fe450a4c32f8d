"""Checks whether AscendNPU-IR v1.0.0 has the ops and properties of a module.

The tables are from the ODS of v1.0.0 (branch release/v1.0.0, 3c20e046). They do not list ops whose text in v1.0.0 only has
another syntax: the printers of these ops write it (``syn_instr_mode``, ``enable_nz2nd``, ``unit_flag[...]``, ``convert_layout``
without a shape).
"""

from __future__ import annotations

from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase
from xdsl.ir import Operation

from tilelang_npu.errors import TileError

TOOLCHAINS = ("master", "1.0.0")

NEWER_THAN_1_0 = frozenset(f"hivm.hir.{mnemonic}" for mnemonic in (
    "Conv1dL1", "Conv2dL1", "Conv3dL1", "anchor", "atomic_rmw", "custom", "custom_macro", "embedding_gather", "free_lock_var",
    "gatherT", "gather_load", "index_put", "indirect_load", "indirect_store", "l12ub", "load_scale", "local_load",
    "local_store", "mmadmxL1", "multi_buffer_counter", "scatterT", "scatter_store", "set_atomic", "set_ctrl", "stride_load",
    "stride_store", "vatan", "vcummax", "vcummin", "vexp2", "vexpm1", "vgathermask", "vilogb", "visinf", "visnan", "vldexp",
    "vlog10", "vlog1p", "vlog2", "vmodui", "vmulextui", "vtan"))
_NEWER_PROPERTIES = {
    "hivm.hir.load": ("eviction_policy", "tcoretype"),
    "hivm.hir.fixpipe": ("dual_dst_mode", "sub_block_idx", "c0_pad_en", "unit_flag_group_id"),
    "hivm.hir.mmadL1": ("unit_flag_group_id", "enable_I4"),
    "hivm.hir.batchMmadL1": ("unit_flag_group_id", "enable_I4"),
    "hivm.hir.sync_block": ("cube_pipe", "vector_pipe"),
    "hivm.hir.sync_block_wait": ("tsync_instr_mode",),
    "hivm.hir.vgather": ("gather_axis",),
}


def require_writable(module: Operation, toolchain: str, *, generic: bool) -> None:
    """Checks that a version of AscendNPU-IR has all ops and properties of a module.

    Args:
        module: the module.
        toolchain: the version, ``master`` or ``1.0.0``.
        generic: whether the module is to be printed in generic form, which is supported only for ``master``.

    Raises:
        TileError: T603, the version is unknown, lacks an op or a property, or does not support the generic form.
    """
    if toolchain not in TOOLCHAINS:
        raise TileError(f"unknown toolchain {toolchain!r}", code="T603",
                        help=f"toolchain must be one of {', '.join(TOOLCHAINS)}")
    if toolchain == "master":
        return
    if generic:
        raise TileError("the generic form can be printed only for toolchain='master'", code="T603",
                        help="v1.0.0 has other properties: print the custom form, or use toolchain='master'")
    for op in module.walk():
        reason = _missing_in_1_0(op)
        if reason:
            raise TileError(f"AscendNPU-IR v1.0.0 {reason}", code="T603", help="use toolchain='master'")


def _missing_in_1_0(op: Operation) -> str:
    """The reason why v1.0.0 does not have an op; empty where it does."""
    if op.name in NEWER_THAN_1_0:
        return f"has no op {op.name}"
    for name in _NEWER_PROPERTIES.get(op.name, ()):
        if name in op.properties:
            return f"has no '{name}' on {op.name}"
    if op.name == "hivm.hir.fixpipe":
        if "nz2dn" in str(op.properties.get("dma_mode", "")):
            return "has no dma_mode nz2dn on hivm.hir.fixpipe"
        segments = op.properties["operandSegmentSizes"]
        if isinstance(segments, DenseArrayBase) and segments.get_values()[3]:
            return "has no quant_scale on hivm.hir.fixpipe"
    modes = op.properties.get("unit_flag_mode")
    if isinstance(modes, ArrayAttr) and len(modes) > 1:
        return f"supports only one unit flag on {op.name}"
    return ""
