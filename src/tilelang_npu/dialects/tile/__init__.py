"""The tile dialect: a kernel as its author wrote it, before the compiler chooses cores, memories, addresses and waits.

Buffers are memrefs. A buffer whose memory the author chose has a HIVM address space (``#hivm.address_space<ub>``, ``gm`` for
arguments). A buffer whose memory the compiler must choose has ``#tile.scope<shared>`` (L1 or UB) or ``#tile.scope<fragment>``
(L0C or UB); ``#tile.scope<local>`` is scalar storage. Loops and branches are ops of ``scf``. Scalar operations are ops of
``arith``. Accesses to single elements are ``memref.load`` and ``memref.store``. Flags and barriers that the author wrote are
ops of ``hivm``.

A region of a global tensor may extend beyond the bounds of the tensor: ``tile.copy`` then moves the elements inside of the
bounds. A load fills the other elements of its destination with a padding value, and a store does not write them.
"""

from __future__ import annotations

from xdsl.ir import Dialect

from tilelang_npu.dialects.ir.effects import ATOMIC as ATOMIC
from tilelang_npu.dialects.ir.effects import atomic_kind_of as atomic_kind_of
from tilelang_npu.dialects.tile import buffers, calls, compute, structure, vector_function

# The names of the ops and attributes are listed once, in ``__all__`` of their modules.
from tilelang_npu.dialects.tile.buffers import *  # noqa: F403  re-exported
from tilelang_npu.dialects.tile.calls import *  # noqa: F403  re-exported
from tilelang_npu.dialects.tile.compute import *  # noqa: F403  re-exported
from tilelang_npu.dialects.tile.structure import *  # noqa: F403  re-exported
from tilelang_npu.dialects.tile.vector_function import *  # noqa: F403  re-exported

Tile = Dialect("tile", [
    structure.LaunchOp, structure.ByCoreOp, structure.OnCoreOp, buffers.AllocOp, buffers.TensorOp, buffers.StridedTensorOp,
    buffers.RegionOp, buffers.ViewOp, compute.CopyOp, compute.PatchLoadOp, compute.GemmOp, compute.ElementwiseOp,
    compute.ReduceOp, compute.FillOp, compute.BroadcastOp, calls.CallOp, calls.DumpOp, calls.PrintfOp, calls.PrintOp,
    calls.ScratchOp, calls.SignalOp,
    structure.ParallelOp, structure.YieldOp, vector_function.VectorFunctionOp,
], [buffers.ScopeAttr])
