"""The core that an operation runs on: AIC (the Cube core), AIV (the Vector cores) or either.

The pass ``assign-cores`` stores the core as an attribute of the operation; the operation's memories and pipes imply the core.
An operation that copies, computes on tiles, loads or stores an element, sets a flag, loops or branches has the attribute
``hivm.tcore_type``: ``CUBE``, ``VECTOR``, or ``CUBE_OR_VECTOR`` for work that either core, or both, may do. Scalar
computations, views and allocations have no such attribute: each core that needs their results executes them. A pass that
inserts an operation must set the attribute (:func:`put_core`). In a function for one core, the function has the attribute and
its operations have none.
"""

from __future__ import annotations

import re
from functools import cache
from typing import cast, get_args

from xdsl.dialects import func, memref, scf
from xdsl.ir import Operation
from xdsl.traits import Pure

from tilelang_npu.analysis.buffers import space_of
from tilelang_npu.analysis.nesting import enclosing
from tilelang_npu.dialects import annotation, hivm, memref_ext, tile
from tilelang_npu.dialects.ir.declaration import DialectOp
from tilelang_npu.dialects.ir.effects import effects_of, is_vector_call
from tilelang_npu.dialects.text import location_of
from tilelang_npu.errors import TileError
from tilelang_npu.target import Chip
from tilelang_npu.target.chip_data import FunctionCore, OpCore

CORE = "hivm.tcore_type"
"""The attribute of an operation that names its core."""
_TO_CORE: dict[hivm.CoreType, OpCore] = {"CUBE": "AIC", "VECTOR": "AIV", "CUBE_OR_VECTOR": "either"}
_TO_ATTRIBUTE: dict[OpCore, hivm.CoreTypeAttr] = {core: hivm.CoreTypeAttr(word) for word, core in _TO_CORE.items()}
_FUNCTION = "hivm.func_core_type"
_BRANCHES = (scf.ForOp, scf.IfOp, scf.WhileOp)
_Stated = hivm.CustomOp | hivm.CustomMacroOp | hivm.SyncBlockSetOp | hivm.SyncBlockWaitOp
_STATED = frozenset(get_args(_Stated))
_OF_NONE = (tile.AllocOp, tile.LaunchOp, tile.OnCoreOp, tile.YieldOp, memref_ext.AllocWorkspaceOp, annotation.MarkOp,
            hivm.PointerCastOp)


def has_core(op: Operation) -> bool:
    """Whether an operation is executed by a certain core, so that it needs a core.

    Pure scalar computations, views and allocations need none: each core that needs their results executes them.
    """
    return _kind_has_core(type(op)) or is_vector_call(op)


@cache
def _kind_has_core(kind: type[Operation]) -> bool:
    if issubclass(kind, (memref.LoadOp, memref.StoreOp, *_BRANCHES)):
        return True
    ours = issubclass(kind, DialectOp) or kind.name.startswith("tile.")
    return ours and not issubclass(kind, _OF_NONE) and not kind.has_trait(Pure)


def states_core(op: Operation) -> bool:
    """Whether the core of an operation is part of the operation's definition, so that it needs no ``hivm.tcore_type``."""
    return type(op) in _STATED  # isinstance asks each of these abstract classes, and all ops are asked for their core


def noted_core(op: Operation) -> OpCore | None:
    """Returns the core that an operation states by its attribute or its definition; None where the operation states none."""
    noted = op.attributes.get(CORE)
    if isinstance(noted, hivm.CoreTypeAttr):
        return _TO_CORE.get(noted.short)
    return cast(_Stated, op).core() if type(op) in _STATED else None


def core_of(op: Operation) -> OpCore:
    """Returns the core that an operation runs on: ``AIC``, ``AIV`` or ``either``.

    Raises:
        TileError: T294, the operation needs a core, and neither the operation nor its function states a core.
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
    raise TileError(f"{op.name} has no core yet; run assign-cores first", code="T294", location=location_of(op))


def inherent_core(op: Operation, chip: Chip) -> OpCore:
    """Returns the core that an operation's memories or pipes imply; ``either`` where they imply none."""
    if isinstance(op, (memref.LoadOp, memref.StoreOp)):
        reads = isinstance(op, memref.LoadOp)
        space = hivm.space_of(op.operands[0 if reads else 1].type)
        return "AIV" if space == "ub" or (space == "gm" and not reads) else "either"
    if isinstance(op, DialectOp) and not op.name.startswith("tile."):
        return op.core()
    if isinstance(op, tile.CallOp):
        return op.entry().core
    if isinstance(op, tile.SignalOp):
        return "AIV"
    if isinstance(op, tile.CopyOp):
        ends = space_of(op.source), space_of(op.target)
        ways = {path.core for path in chip.paths.values() if (path.source, path.target) == ends}
        if len(ways) == 1:
            return ways.pop()
    cores = {memory.core for use in effects_of(op) if (memory := chip.memory_of(space_of(use.value))) is not None}
    return "AIC" if "AIC" in cores else "AIV" if cores else "either"


def core_type(core: OpCore) -> hivm.CoreType:
    """Returns the core ``AIC``, ``AIV`` or ``either`` as HIVM spells it: ``CUBE``, ``VECTOR`` or ``CUBE_OR_VECTOR``."""
    return _TO_ATTRIBUTE[core].short


def put_core(op: Operation, core: OpCore) -> None:
    """Stores the core (``AIC``, ``AIV`` or ``either``) as the attribute ``hivm.tcore_type`` of an operation."""
    op.attributes[CORE] = _TO_ATTRIBUTE[core]


def forget_core(op: Operation) -> None:
    """Removes the attribute ``hivm.tcore_type`` from an operation, unless it is part of the operation's definition."""
    if not states_core(op):
        op.attributes.pop(CORE, None)


def core_of_function(function: func.FuncOp) -> FunctionCore | None:
    """Returns the cores that a function states; None where the function states none."""
    kind = function.attributes.get(_FUNCTION)
    return kind.short if isinstance(kind, hivm.FuncCoreTypeAttr) else None


def put_core_of_function(function: func.FuncOp, kind: FunctionCore) -> None:
    """Stores the cores that execute a function (``AIC``, ``AIV`` or ``MIX``) as an attribute of the function."""
    function.attributes[_FUNCTION] = hivm.FuncCoreTypeAttr(kind)


def is_mixed(function: func.FuncOp) -> bool:
    """Whether a function is a kernel for both kinds of cores."""
    return bool(function.body.blocks) and core_of_function(function) == "MIX"


def function_of(op: Operation) -> func.FuncOp | None:
    """Returns the function that contains an operation, or the operation itself if it is a function; None if there is none."""
    return op if isinstance(op, func.FuncOp) else enclosing(op, func.FuncOp)


def kernel_of(op: Operation) -> str:
    """Returns the name of the kernel that an operation belongs to, without the suffix that ``split-cores`` adds for each core.
    """
    function = function_of(op)
    assert function is not None, "an operation of a kernel"
    return re.sub("_mix_ai[cv]$", "", function.sym_name.data)
