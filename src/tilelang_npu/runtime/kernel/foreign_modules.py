"""HIVM that other tools wrote: the form of a module, and how it is brought to the form that the simulator runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilelang_npu.runtime.settings.targets import find_chip

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from tilelang_npu.target import Chip


def is_planned(module: ModuleOp) -> bool:
    """Whether the kernels of a module have addresses: they contain no allocation and no tensor, and are split by core."""
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
    """Returns the module in the form that the simulator runs.

    A module whose kernels have addresses stays as it is, so that a missing wait stays missing; only parallel loops are made
    sequential. Any other module goes through the passes of this package. If its author set flags or barriers within a core, no
    wait is inserted within a core.

    Args:
        module: the module, which is changed.
        chip: the chip to compile for; None: the chip of the module's ``hacc.target``.

    Raises:
        TileError: the module cannot be compiled; the error names the line.
    """
    from tilelang_npu.dialects import hacc, hivm
    from tilelang_npu.transforms.ir.options import Options
    from tilelang_npu.transforms.pipeline import complete, put_in_order

    if is_planned(module):
        return put_in_order(module)
    by_hand = any(isinstance(op, (hivm.SetFlagOp, hivm.WaitFlagOp, hivm.PipeBarrierOp)) for op in module.walk())
    options = Options(chip=chip or find_chip(hacc.target_of(module) or "", None), synchronise=not by_hand)
    return complete(module, options)
