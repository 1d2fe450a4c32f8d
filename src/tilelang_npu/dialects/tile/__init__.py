"""The tile dialect: a kernel as its author wrote it, before cores, memories, addresses and waits are chosen.

Buffers are memrefs. A buffer whose memory the author chose has the HIVM address space (``#hivm.address_space<ub>``, ``gm`` for
arguments). A buffer whose memory is still to be inferred has ``#tile.scope<shared>`` (L1 or UB) or ``#tile.scope<fragment>``
(L0C or UB); ``#tile.scope<local>`` is scalar storage. Loops and branches are ops of ``scf``, scalars of ``arith``, element
accesses ``memref.load`` and ``memref.store``. Flags and barriers of the author are the ops of ``hivm``.

A region of a global tensor may extend beyond the tensor: ``tile.copy`` moves the part inside; a load pads the rest, and a store
drops it.
"""

from __future__ import annotations

from xdsl.ir import Dialect

from tilelang_npu.dialects.ir.effects import ATOMIC
from tilelang_npu.dialects.tile.buffers import (
    AllocOp,
    OpenMemory,
    RegionOp,
    ScopeAttr,
    TensorOp,
    ViewOp,
    region_type,
    root_of,
    shape_of,
    shape_text,
)
from tilelang_npu.dialects.tile.calls import DEBUG_OUTPUT_OPS, CallOp, DumpOp, PrintfOp, PrintOp
from tilelang_npu.dialects.tile.compute import BroadcastOp, CopyOp, ElementwiseOp, FillOp, GemmOp, ReduceOp
from tilelang_npu.dialects.tile.structure import (
    CROSS_INTERVAL,
    DIALECT,
    NUM_STAGES,
    ORDER,
    SCHEDULE,
    SCRATCH,
    STAGE,
    UNROLL,
    WORKSPACE,
    ByCoreOp,
    LaunchOp,
    OnCoreOp,
    ParallelOp,
    YieldOp,
    stages_of,
    statement_name,
    statement_of,
    strip_statement,
)

Tile = Dialect(
    "tile",
    [
        LaunchOp,
        ByCoreOp,
        OnCoreOp,
        AllocOp,
        TensorOp,
        RegionOp,
        ViewOp,
        CopyOp,
        GemmOp,
        ElementwiseOp,
        ReduceOp,
        FillOp,
        BroadcastOp,
        CallOp,
        DumpOp,
        PrintfOp,
        PrintOp,
        ParallelOp,
        YieldOp,
    ],
    [ScopeAttr],
)

__all__ = [
    "ATOMIC",
    "CROSS_INTERVAL",
    "DEBUG_OUTPUT_OPS",
    "DIALECT",
    "NUM_STAGES",
    "ORDER",
    "SCHEDULE",
    "SCRATCH",
    "STAGE",
    "UNROLL",
    "WORKSPACE",
    "AllocOp",
    "BroadcastOp",
    "ByCoreOp",
    "CallOp",
    "CopyOp",
    "DumpOp",
    "ElementwiseOp",
    "FillOp",
    "GemmOp",
    "LaunchOp",
    "OnCoreOp",
    "OpenMemory",
    "ParallelOp",
    "PrintOp",
    "PrintfOp",
    "ReduceOp",
    "RegionOp",
    "ScopeAttr",
    "TensorOp",
    "Tile",
    "ViewOp",
    "YieldOp",
    "region_type",
    "root_of",
    "shape_of",
    "shape_text",
    "stages_of",
    "statement_name",
    "statement_of",
    "strip_statement",
]
