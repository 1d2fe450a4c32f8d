"""Which core an operation runs on, as ``assign-cores`` has written it on the operation.

What moves, computes, stores an element, sets a flag, loops or branches carries HIVM's ``hivm.tcore_type``: ``CUBE``,
``VECTOR``, or ``CUBE_OR_VECTOR`` for what either core may do, or both. Scalars, views and allocations carry none: whoever needs
them has them. A pass that makes an operation of a core writes it (``put_core``). In a function of one core it is the function
that says it, and the attribute is gone.
"""

from __future__ import annotations

import re
from functools import cache
from typing import cast, get_args

from xdsl.dialects import func, memref, scf
from xdsl.ir import Operation
from xdsl.traits import Pure

from tilelang_npu.dialects import annotation, hivm, memref_ext, tile
from tilelang_npu.dialects.ir.declaration import DialectOp
from tilelang_npu.transforms.ir.locations import refuse

CORE = "hivm.tcore_type"
_TO_CORE = {"CUBE": "AIC", "VECTOR": "AIV", "CUBE_OR_VECTOR": "either"}
_TO_ATTRIBUTE = {core: hivm.CoreTypeAttr(word) for word, core in _TO_CORE.items()}
_FUNCTION = "hivm.func_core_type"
_BRANCHES = (scf.ForOp, scf.IfOp, scf.WhileOp)
_Stated = hivm.CustomOp | hivm.CustomMacroOp | hivm.SyncBlockSetOp | hivm.SyncBlockWaitOp
_STATED = frozenset(get_args(_Stated))
_OF_NONE = (tile.AllocOp, tile.LaunchOp, tile.OnCoreOp, tile.YieldOp, memref_ext.AllocWorkspaceOp, annotation.MarkOp,
            hivm.PointerCastOp)


def has_core(op: Operation) -> bool:
    """Whether an operation is of a kind that is done by a core, and not whoever needs its result."""
    return _kind_has_core(type(op))


@cache
def _kind_has_core(kind: type[Operation]) -> bool:
    if issubclass(kind, (memref.LoadOp, memref.StoreOp, *_BRANCHES)):
        return True
    ours = issubclass(kind, DialectOp) or kind.name.startswith("tile.")
    return ours and not issubclass(kind, _OF_NONE) and not kind.has_trait(Pure)


def states_core(op: Operation) -> bool:
    """Whether an operation states its core as part of what it is, so that there is nothing to write or to take away."""
    return type(op) in _STATED  # isinstance asks each of these abstract classes, and all ops are asked for their core


def noted_core(op: Operation) -> str | None:
    """``AIC``, ``AIV`` or ``either``, where the operation carries it."""
    noted = op.attributes.get(CORE)
    if isinstance(noted, hivm.CoreTypeAttr):
        return _TO_CORE.get(noted.data)
    return cast(_Stated, op).core() if type(op) in _STATED else None


def core_of(op: Operation) -> str:
    """``AIC``, ``AIV`` or ``either``: the core that an operation runs on.

    Raises:
        TileError: T294, the operation carries none.
    """
    noted = noted_core(op)
    if noted is not None:
        return noted
    if not has_core(op):
        return "either"
    function = function_of(op)
    kind = None if function is None else core_of_function(function)
    if kind in ("AIC", "AIV"):
        return kind
    raise refuse(op, f"{op.name} has no core yet; run assign-cores first", "T294")


def core_type(core: str) -> str:
    """HIVM's word for ``AIC``, ``AIV`` or ``either``."""
    return _TO_ATTRIBUTE[core].data


def put_core(op: Operation, core: str) -> None:
    """Write the core (``AIC``, ``AIV`` or ``either``) on an operation."""
    op.attributes[CORE] = _TO_ATTRIBUTE[core]


def forget_core(op: Operation) -> None:
    """Take away what was written on an operation."""
    if not states_core(op):
        op.attributes.pop(CORE, None)


def core_of_function(function: func.FuncOp) -> str | None:
    """``AIC``, ``AIV`` or ``MIX``, where the function says it."""
    kind = function.attributes.get(_FUNCTION)
    return kind.data if isinstance(kind, hivm.FuncCoreTypeAttr) else None


def put_core_of_function(function: func.FuncOp, kind: str) -> None:
    """Write the cores (``AIC``, ``AIV`` or ``MIX``) on a function."""
    function.attributes[_FUNCTION] = hivm.FuncCoreTypeAttr(kind)


def is_mixed(function: func.FuncOp) -> bool:
    """Whether a function is the kernel of both cores."""
    return bool(function.body.blocks) and core_of_function(function) == "MIX"


def function_of(op: Operation) -> func.FuncOp | None:
    """The function that an operation stands in."""
    function: Operation | None = op
    while function is not None and not isinstance(function, func.FuncOp):
        function = function.parent_op()
    return function


def kernel_of(op: Operation) -> str:
    """The name of the kernel that an operation is of: a kernel of both cores is a function for each once it is split."""
    function = function_of(op)
    assert function is not None, "an operation of a kernel"
    return re.sub("_mix_ai[cv]$", "", function.sym_name.data)
