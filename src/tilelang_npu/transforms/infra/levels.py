"""The levels that a module passes through during compilation, and the rules for a legal module at each level.

``transforms/pipeline.py`` states the level of the module after each pass. Tests check the rules; a compilation does not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Literal

from xdsl.dialects import func, memref
from xdsl.dialects.builtin import MemRefType, ModuleOp
from xdsl.ir import Operation

from tilelang_npu.analysis.buffers import space_of
from tilelang_npu.analysis.cores import core_of_function, has_core, noted_core, states_core
from tilelang_npu.dialects import hivm, memref_ext, tile
from tilelang_npu.transforms.infra.pass_marks import has_run, is_finished

Level = Literal["tile", "scoped", "cored", "lowered", "mixed", "split", "planned", "synchronised", "foreign"]
Rule = Callable[[func.FuncOp], Iterator[tuple[Operation, str]]]
_ALLOCATIONS = (memref.AllocOp, memref_ext.AllocWorkspaceOp)


def _nothing_of_lowering(function: func.FuncOp) -> Iterator[tuple[Operation, str]]:
    """Yields the operations on HIVM's buffers, which only lowering inserts."""
    for op in function.walk():
        if isinstance(op, (*_ALLOCATIONS, memref.SubviewOp, hivm.PointerCastOp, tile.ByCoreOp)):
            yield op, "is of HIVM's buffers, which lowering makes"


def _has_no_open_scope(function: func.FuncOp) -> Iterator[tuple[Operation, str]]:
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


def _has_no_tile_op(function: func.FuncOp) -> Iterator[tuple[Operation, str]]:
    for op in function.walk():
        if op.name.startswith("tile.") and not isinstance(op, tile.ByCoreOp):
            yield op, "is of the tile dialect"


def _has_one_core(function: func.FuncOp) -> Iterator[tuple[Operation, str]]:
    """Each function belongs to one core, and so does everything in it."""
    kind = core_of_function(function)
    if kind not in ("AIC", "AIV"):
        yield function, "is not one core's"
    for op in function.walk():
        if isinstance(op, tile.ByCoreOp):
            yield op, "is for two cores"
        elif has_core(op) and not states_core(op) and noted_core(op) is not None:
            yield op, "carries a core although its function has one"


def _has_no_allocation(function: func.FuncOp) -> Iterator[tuple[Operation, str]]:
    for op in function.walk():
        if isinstance(op, _ALLOCATIONS):
            yield op, "has no address"


def _has_waits(function: func.FuncOp) -> Iterator[tuple[Operation, str]]:
    if not has_run(function, "insert-sync") and not is_finished(function):
        yield function, "has no waits"


RULES: Mapping[Level, tuple[Rule, ...]] = {
    "foreign": (),
    "tile": (_nothing_of_lowering,),
    "scoped": (_nothing_of_lowering, _has_no_open_scope),
    "cored": (_nothing_of_lowering, _has_no_open_scope, _every_op_has_a_core),
    "lowered": (_has_no_open_scope, _has_no_tile_op),
    "mixed": (_has_no_open_scope, _has_no_tile_op, _every_op_has_a_core),
    "split": (_has_no_open_scope, _has_no_tile_op, _has_one_core),
    "planned": (_has_no_open_scope, _has_no_tile_op, _has_one_core, _has_no_allocation),
    "synchronised": (_has_no_open_scope, _has_no_tile_op, _has_one_core, _has_no_allocation, _has_waits),
}
"""The rules of each level.

The levels are, in this order: ``tile`` (as traced), ``scoped`` (all memories are chosen), ``cored`` (every operation has a
core), ``lowered`` (no operation is of the tile dialect), ``mixed`` (lowered, and every operation has a core), ``split`` (each
function is for one core), ``planned`` (buffers have addresses), ``synchronised`` (waits are inserted). ``foreign`` is HIVM that
another tool wrote; it has no rules.
"""


def violations(module: ModuleOp, level: Level) -> list[str]:
    """Returns the violations of a level's rules in a module, each as a text: the operation's name and what is wrong with it."""
    return [f"{op.name} {what}" for rule in RULES[level] for op, what in rule_violations(module, rule)]


def rule_violations(module: ModuleOp, rule: Rule) -> Iterator[tuple[Operation, str]]:
    """Yields the operations in a module's kernels that violate a rule, each with a text that says what is wrong with it."""
    for function in module.ops:
        if isinstance(function, func.FuncOp) and _is_kernel(function):
            yield from rule(function)


def _is_kernel(function: func.FuncOp) -> bool:
    return bool(function.body.blocks) and ("hacc.entry" in function.attributes
                                           or any(isinstance(op, tile.LaunchOp) for op in function.walk()))
