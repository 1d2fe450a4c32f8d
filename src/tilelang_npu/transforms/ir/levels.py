"""The levels that a module goes through, and what holds at each.

``pipeline`` says at which level a module is behind each pass. The check is for tests: compiling does without it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Literal

from xdsl.dialects import func, memref
from xdsl.dialects.builtin import MemRefType, ModuleOp
from xdsl.ir import Operation

from tilelang_npu.dialects import hivm, memref_ext, tile
from tilelang_npu.transforms.ir.buffers import space_of
from tilelang_npu.transforms.ir.cores import core_of_function, has_core, noted_core, states_core
from tilelang_npu.transforms.ir.treated import is_finished, is_treated

Level = Literal["tile", "scoped", "cored", "lowered", "mixed", "split", "planned", "synchronised", "foreign"]
Rule = Callable[[func.FuncOp], Iterator[tuple[Operation, str]]]
_ALLOCATIONS = (memref.AllocOp, memref_ext.AllocWorkspaceOp)


def _unlowered(function: func.FuncOp) -> Iterator[tuple[Operation, str]]:
    """Nothing of what lowering makes."""
    for op in function.walk():
        if isinstance(op, (*_ALLOCATIONS, memref.SubviewOp, hivm.PointerCastOp, tile.ByCoreOp)):
            yield op, "is of HIVM's buffers, which lowering makes"


def _no_open_scope(function: func.FuncOp) -> Iterator[tuple[Operation, str]]:
    for op in function.walk():
        for value in op.results:
            if isinstance(value.type, MemRefType) and space_of(value) in ("shared", "fragment"):
                yield op, "has no memory"


def _every_op_has_a_core(function: func.FuncOp) -> Iterator[tuple[Operation, str]]:
    kind = core_of_function(function)
    if kind is None:
        yield function, "does not say its cores"
    for op in function.walk() if kind not in ("AIC", "AIV") else ():
        if has_core(op) and noted_core(op) is None:
            yield op, "has no core"


def _no_tile_op(function: func.FuncOp) -> Iterator[tuple[Operation, str]]:
    for op in function.walk():
        if op.name.startswith("tile.") and not isinstance(op, tile.ByCoreOp):
            yield op, "is of the tile dialect"


def _one_core(function: func.FuncOp) -> Iterator[tuple[Operation, str]]:
    """Each function is one core's, as it says, and so is all in it."""
    kind = core_of_function(function)
    if kind not in ("AIC", "AIV"):
        yield function, "is not one core's"
    for op in function.walk():
        if isinstance(op, tile.ByCoreOp):
            yield op, "is for two cores"
        elif has_core(op) and not states_core(op) and noted_core(op) is not None:
            yield op, "says its core beside its function"


def _no_allocation(function: func.FuncOp) -> Iterator[tuple[Operation, str]]:
    for op in function.walk():
        if isinstance(op, _ALLOCATIONS):
            yield op, "has no address"


def _synchronised(function: func.FuncOp) -> Iterator[tuple[Operation, str]]:
    if not is_treated(function, "insert-sync") and not is_finished(function):
        yield function, "has no waits"


RULES: Mapping[Level, tuple[Rule, ...]] = {
    "foreign": (),
    "tile": (_unlowered,),
    "scoped": (_unlowered, _no_open_scope),
    "cored": (_unlowered, _no_open_scope, _every_op_has_a_core),
    "lowered": (_no_open_scope, _no_tile_op),
    "mixed": (_no_open_scope, _no_tile_op, _every_op_has_a_core),
    "split": (_no_open_scope, _no_tile_op, _one_core),
    "planned": (_no_open_scope, _no_tile_op, _one_core, _no_allocation),
    "synchronised": (_no_open_scope, _no_tile_op, _one_core, _no_allocation, _synchronised),
}
"""What holds at each level: ``tile`` as traced, ``scoped`` with all memories known, ``cored`` with a core on every operation,
``lowered`` without the tile dialect, ``mixed`` that and every op with its core again, ``split`` with functions of one core,
``planned`` with addresses, ``synchronised`` with waits; ``foreign`` is what other tools write."""


def violations(module: ModuleOp, level: Level) -> list[str]:
    """What a module breaks of a level: the operation, and what it is instead."""
    return [f"{op.name} {what}" for rule in RULES[level] for op, what in broken(module, rule)]


def broken(module: ModuleOp, rule: Rule) -> Iterator[tuple[Operation, str]]:
    """The operations of a module's kernels that break a rule, each with what it is instead."""
    for function in module.ops:
        if isinstance(function, func.FuncOp) and _is_kernel(function):
            yield from rule(function)


def _is_kernel(function: func.FuncOp) -> bool:
    return bool(function.body.blocks) and ("hacc.entry" in function.attributes
                                           or any(isinstance(op, tile.LaunchOp) for op in function.walk()))
