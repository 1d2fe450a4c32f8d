"""The tile dialect: what a kernel says, before anything is decided about cores, memories, addresses or waits.

Buffers are memrefs. A buffer whose memory the user fixed has the HIVM address space (``#hivm.address_space<ub>``,
``gm`` for arguments); one that is still open has ``#tile.scope<shared>`` (L1 or UB) or ``#tile.scope<fragment>`` (L0C
or UB); ``#tile.scope<local>`` is scalar storage. Loops and branches are ``scf``, scalars ``arith`` and ``index``,
element accesses ``memref.load`` and ``memref.store``; flags and barriers that the user wrote are the ``hivm`` ops
themselves.

A region of a global tensor may reach beyond it: ``tile.copy`` moves what lies inside, pads what it loads and drops
the rest of what it stores.
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
from tilelang_npu.dialects.tile.calls import TELLING, CallOp, DumpOp, PrintfOp, PrintOp
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
    without_statement,
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
    "DIALECT",
    "NUM_STAGES",
    "ORDER",
    "SCHEDULE",
    "SCRATCH",
    "STAGE",
    "TELLING",
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
    "without_statement",
]
