"""Which core an operation of a mixed kernel runs on.

What stands in ``T.Scope`` carries its core in the attribute ``hivm.tcore_type`` as far as it does not say so itself: flags and
barriers inside a core, stores of single elements and of scalar variables, loops and branches. The attribute goes when the
cores are split.
"""

from __future__ import annotations

import re

from xdsl.dialects import func, memref, scf
from xdsl.ir import Operation

from tilelang_npu.dialects import hivm
from tilelang_npu.dialects.declaration import DialectOp

ON_CORE = "hivm.tcore_type"
_CORES = {"CUBE": "AIC", "VECTOR": "AIV"}


def assign(op: Operation, core: str) -> None:
    """Note the core (``CUBE`` or ``VECTOR``) on an operation in ``T.Scope`` and on those inside it that leave it open."""
    for inner in op.walk():
        if isinstance(inner, (scf.ForOp, scf.IfOp, scf.WhileOp)):
            ours = all(core_of(each) in (_CORES[core], "either") for each in inner.walk() if each is not inner)
        elif isinstance(inner, memref.StoreOp):
            ours = hivm.space_of(inner.memref.type) != "ub"
        else:
            ours = isinstance(inner, DialectOp) and inner.core() == "either" and not inner.results
        if ours:
            inner.attributes[ON_CORE] = hivm.CoreTypeAttr(core)


def forget(op: Operation) -> None:
    """Remove what ``assign`` noted."""
    if not isinstance(op, (hivm.CustomOp, hivm.CustomMacroOp)):
        op.attributes.pop(ON_CORE, None)


def core_of(op: Operation) -> str:
    """``AIC``, ``AIV`` or ``either``: the core that an operation runs on.

    Element accesses in UB, and element stores to GM, are the Vector core's; element reads of GM are whoever needs them.
    """
    noted = op.attributes.get(ON_CORE)
    if isinstance(noted, hivm.CoreTypeAttr) and noted.data in _CORES:
        return _CORES[noted.data]
    if isinstance(op, (memref.LoadOp, memref.StoreOp)):
        reads = isinstance(op, memref.LoadOp)
        space = hivm.space_of(op.operands[0 if reads else 1].type)
        return "AIV" if space == "ub" or (space == "gm" and not reads) else "either"
    return op.core() if isinstance(op, DialectOp) else "either"


def kernel_of(op: Operation) -> str:
    """The name of the kernel that an operation is of: a kernel of both cores is a function for each once it is split."""
    function: Operation | None = op
    while function is not None and not isinstance(function, func.FuncOp):
        function = function.parent_op()
    assert function is not None, "an operation of a kernel"
    return re.sub("_mix_ai[cv]$", "", function.sym_name.data)
