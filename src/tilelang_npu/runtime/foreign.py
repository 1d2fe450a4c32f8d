"""HIVM of other tools: which form a module is in, and the way from there to the one that runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilelang_npu.runtime.targets import find_chip

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from tilelang_npu.target import Chip

__all__ = ["is_planned", "runnable"]


def is_planned(module: ModuleOp) -> bool:
    """Whether the kernels of a module have their addresses: nothing is allocated, and no core's work is to be split off."""
    from xdsl.dialects.builtin import TensorType
    from xdsl.dialects.memref import AllocOp

    from tilelang_npu.dialects.memref_ext import AllocWorkspaceOp
    from tilelang_npu.transforms.hivm.toolchain_arguments import kernels
    from tilelang_npu.transforms.ir.cores import is_mixed

    return not any(
        is_mixed(kernel) or any(isinstance(op, (AllocOp, AllocWorkspaceOp))
                                or any(isinstance(result.type, TensorType) for result in op.results) for op in kernel.walk())
        for kernel in kernels(module))


def runnable(module: ModuleOp, chip: Chip | None = None) -> ModuleOp:
    """The module in the form that the simulator runs.

    A module whose kernels have addresses is run as it stands, so that a wait that is missing is missing; only loops without an
    order get one. Any other goes through this package's passes; where its author set flags or barriers, those inside a core
    stay as they are.

    Args:
        module: the module; it is changed.
        chip: the chip to complete it for; None takes the module's ``hacc.target``.

    Raises:
        TileError: it cannot be completed; the error names the line.
    """
    from tilelang_npu.dialects import hacc, hivm
    from tilelang_npu.transforms.ir.options import Options
    from tilelang_npu.transforms.pipeline import complete, put_in_order

    if is_planned(module):
        return put_in_order(module)
    by_hand = any(isinstance(op, (hivm.SetFlagOp, hivm.WaitFlagOp, hivm.PipeBarrierOp)) for op in module.walk())
    options = Options(chip=chip or find_chip(hacc.target_of(module) or "", None), synchronise=not by_hand)
    return complete(module, options)
