"""Which of the two dialects of TileLang a source is written in, from the operations that it names."""

from __future__ import annotations

import ast

from tilelang_npu import ops

_NPUIR = frozenset({"gemm", "rs", "load_nd2nz", "store_fixpipe", "store_nz2nd", "vbrc", "sync_block_set", "sync_block_wait",
                    "atomic_add", "atomic_addx2", "atomic_addx4", "alloc_local"})
_ASCENDC = frozenset({"gemm_v0", "mma", "tile", "barrier_all", "set_cross_flag", "wait_cross_flag", "annotate_address",
                      "printf", "dump_tensor", "set_deq_scale"})


def detect(node: ast.FunctionDef) -> str:
    """``npuir`` or ``ascendc``. A launch without ``is_npu`` is a GPU kernel, which npuir takes; without any sign it is ascendc,
    the default target."""
    for part in ast.walk(node):
        if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and part.func.attr == "Kernel" and not any(
                keyword.arg == "is_npu" for keyword in part.keywords):
            return "npuir"
    names = {part.attr for part in ast.walk(node) if isinstance(part, ast.Attribute)}
    if names & _ASCENDC:
        return "ascendc"
    destination_last = {alias for op in ops.elementwise() for alias in op.aliases if not alias.startswith("tile.")}
    if names & (_NPUIR | destination_last) or any(name.startswith("npuir_") for name in names):
        return "npuir"
    return "ascendc"
