"""Writes HIVM's attribute ``hivm.tcore_type`` on operations that either core could execute.

Most HIVM operations imply their core. Operations in a ``T.Scope`` that do not imply their core carry the attribute: flags and
barriers inside a core, stores of single elements and of scalar variables, loops and branches.
"""

from __future__ import annotations

from xdsl.dialects import memref, scf
from xdsl.ir import Operation

from tilelang_npu.analysis.cores import inherent_core, noted_core, put_core
from tilelang_npu.dialects import hivm
from tilelang_npu.dialects.ir.declaration import DialectOp
from tilelang_npu.target import Chip
from tilelang_npu.target.chip_data import OpCore


def write_core(op: Operation, core: OpCore, chip: Chip) -> None:
    """Writes the attribute on an HIVM operation and on the operations nested in it, unless the operation implies its core.

    Args:
        op: the operation.
        core: ``AIC`` or ``AIV``.
        chip: the chip, which determines the operations that imply their core.
    """
    for inner in reversed(list(op.walk())):  # inner ops before the loop that contains them
        if isinstance(inner, (scf.ForOp, scf.IfOp, scf.WhileOp)):
            ours = all((noted_core(each) or inherent_core(each, chip)) in (core, "either")
                       for each in inner.walk() if each is not inner)
        elif isinstance(inner, memref.StoreOp):
            ours = hivm.space_of(inner.memref.type) != "ub"
        else:
            ours = isinstance(inner, DialectOp) and inner.core() == "either" and not inner.results
        if ours:
            put_core(inner, core)
