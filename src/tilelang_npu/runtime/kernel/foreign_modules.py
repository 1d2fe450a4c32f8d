"""Prepares HIVM modules that other tools wrote for the simulator."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilelang_npu.runtime.settings.targets import find_chip

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from tilelang_npu.target import Chip


def is_planned(module: ModuleOp) -> bool:
    """Whether all kernels of a module have planned addresses: no allocations, no tensors, and no function for both core
    kinds."""
    from xdsl.dialects.builtin import TensorType
    from xdsl.dialects.memref import AllocOp

    from tilelang_npu.analysis.cores import is_mixed
    from tilelang_npu.analysis.toolchain_arguments import kernels
    from tilelang_npu.dialects.memref_ext import AllocWorkspaceOp

    return not any(
        is_mixed(kernel) or any(isinstance(op, (AllocOp, AllocWorkspaceOp))
                                or any(isinstance(result.type, TensorType) for result in op.results) for op in kernel.walk())
        for kernel in kernels(module))


def runnable(module: ModuleOp, chip: Chip | None = None) -> ModuleOp:
    """Lowers a module in place until the simulator can run it, and returns the module.

    If the kernels have planned addresses (:func:`is_planned`), only parallel loops are made sequential; no waits are inserted,
    so that a run shows the hazards of missing waits. Any other module is lowered by the passes of this package. They insert
    waits within a core only if the module has none (flags or barriers of pipes).

    Args:
        module: the module, which is changed.
        chip: the chip to compile for; None: the chip of the module's ``hacc.target``.

    Raises:
        TileError: the module cannot be compiled; the error has the line.
    """
    from tilelang_npu.dialects import hacc, hivm
    from tilelang_npu.transforms.infra.options import Options
    from tilelang_npu.transforms.pipeline import complete, put_in_order

    if is_planned(module):
        return put_in_order(module)
    by_hand = any(isinstance(op, (hivm.SetFlagOp, hivm.WaitFlagOp, hivm.PipeBarrierOp)) for op in module.walk())
    options = Options(chip=chip or find_chip(hacc.target_of(module) or "", None), synchronise=not by_hand)
    return complete(module, options)
