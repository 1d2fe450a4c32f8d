"""How HIVM says the core of an op that could be on either: in the attribute ``hivm.tcore_type``.

Most ops of HIVM say their core themselves. What stands in ``T.Scope`` carries it as far as it does not: flags and barriers
inside a core, stores of single elements and of scalar variables, loops and branches.
"""

from __future__ import annotations

from xdsl.dialects import memref, scf
from xdsl.ir import Operation

from tilelang_npu.dialects import hivm
from tilelang_npu.dialects.ir.declaration import DialectOp
from tilelang_npu.target import Chip
from tilelang_npu.transforms.ir.cores import noted_core, put_core
from tilelang_npu.transforms.tile.assign_cores import told_core


def say_core(op: Operation, core: str, chip: Chip) -> None:
    """Write the core (``AIC`` or ``AIV``) on an op of HIVM, and on those inside it, as far as they leave it open."""
    for inner in reversed(list(op.walk())):  # what is in a loop before the loop
        if isinstance(inner, (scf.ForOp, scf.IfOp, scf.WhileOp)):
            ours = all((noted_core(each) or told_core(each, chip)) in (core, "either")
                       for each in inner.walk() if each is not inner)
        elif isinstance(inner, memref.StoreOp):
            ours = hivm.space_of(inner.memref.type) != "ub"
        else:
            ours = isinstance(inner, DialectOp) and inner.core() == "either" and not inner.results
        if ours:
            put_core(inner, core)
