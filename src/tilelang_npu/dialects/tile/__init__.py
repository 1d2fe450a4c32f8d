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

from tilelang_npu.dialects.ir.effects import ATOMIC as ATOMIC
from tilelang_npu.dialects.tile import buffers, calls, compute, structure

# The names of the ops and attributes are listed once, in ``__all__`` of their modules.
from tilelang_npu.dialects.tile.buffers import *  # noqa: F403  re-exported
from tilelang_npu.dialects.tile.calls import *  # noqa: F403  re-exported
from tilelang_npu.dialects.tile.compute import *  # noqa: F403  re-exported
from tilelang_npu.dialects.tile.structure import *  # noqa: F403  re-exported

Tile = Dialect("tile", [
    structure.LaunchOp, structure.ByCoreOp, structure.OnCoreOp, buffers.AllocOp, buffers.TensorOp, buffers.RegionOp,
    buffers.ViewOp, compute.CopyOp, compute.GemmOp, compute.ElementwiseOp, compute.ReduceOp, compute.FillOp,
    compute.BroadcastOp, calls.CallOp, calls.DumpOp, calls.PrintfOp, calls.PrintOp, structure.ParallelOp, structure.YieldOp,
], [buffers.ScopeAttr])
