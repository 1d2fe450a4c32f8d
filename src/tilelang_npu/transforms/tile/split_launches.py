"""Splits a kernel that has several ``T.Kernel`` launches in sequence into one function for each launch.

The functions are called ``NAME_1``, ``NAME_2``, ... in the order of the launches, and have the same arguments. They are
launched in this order: all blocks of one launch finish before the first block of the next one starts. Scalars that are computed
before or between the launches are computed in each function that needs them. This gives the same value if a scalar depends on
sizes and constants only. If it depends on an element of a tensor, the element is now read when the launch that uses it starts;
this is an error if an earlier launch overwrites the tensor after the author's read. A tensor that holds no data when the first
launch starts (``tile.scratch``) holds data when a later launch starts, and is then no private workspace (``tile.workspace``).

The pass runs first, so that all later passes work on functions with one launch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import func, memref
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp, StringAttr
from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from tilelang_npu.analysis.buffers import root_of, walk
from tilelang_npu.analysis.locations import line_of, refuse
from tilelang_npu.dialects import tile
from tilelang_npu.dialects.ir.effects import effects_of
from tilelang_npu.dialects.text.names import author_name
from tilelang_npu.transforms.infra.launch_names import launch_function_names


def launches_of(function: func.FuncOp) -> list[tile.LaunchOp]:
    """Returns the launches (``tile.launch``) in the body of a kernel, in order."""
    return [op for op in function.body.block.ops if isinstance(op, tile.LaunchOp)] if function.body.blocks else []


def arguments_written_by(launch: tile.LaunchOp) -> set[int]:
    """Returns the positions of the kernel's arguments that a launch writes."""
    roots = (root_of(use.value) for op in walk(launch.body.block) for use in effects_of(op) if use.writes)
    return {root.index for root in roots if isinstance(root, BlockArgument) and isinstance(root.block.parent_op(), func.FuncOp)}


def _arguments_used_by(launch: tile.LaunchOp) -> set[int]:
    """Returns the positions of the arguments that a launch uses."""
    return {operand.index for op in walk(launch.body.block) for operand in op.operands
            if isinstance(operand, BlockArgument) and isinstance(operand.block.parent_op(), func.FuncOp)}


def _function_of_launch(function: func.FuncOp, number: int, name: str) -> func.FuncOp:
    """Builds the function of one launch, with the scalars that it needs."""
    made = function.clone()
    made.properties["sym_name"] = StringAttr(name)
    launches = launches_of(made)
    written = {position for launch in launches[:number] for position in arguments_written_by(launch)}
    others = {position for at, launch in enumerate(launches) if at != number for position in _arguments_used_by(launch)}
    if made.arg_attrs is not None:
        # Another launch wrote a scratch tensor before, or also accesses a workspace: then it is neither for this launch.
        removed = [({tile.SCRATCH} if position in written else set()) | ({tile.WORKSPACE} if position in others else set())
                   for position in range(len(made.arg_attrs))]
        made.properties["arg_attrs"] = ArrayAttr([
            DictionaryAttr({name: value for name, value in each.data.items() if name not in names})
            for each, names in zip(made.arg_attrs.data, removed, strict=True)])
    made.location = launches[number].location
    for launch in [*launches[:number], *launches[number + 1:]]:
        Rewriter.erase_op(launch)
    for op in reversed(list(made.body.block.ops)):
        if op.results and all(result.first_use is None for result in op.results):
            Rewriter.erase_op(op)
    return made


def _ops_needed_by(launch: tile.LaunchOp) -> set[Operation]:
    """Returns the operations outside of a launch whose results it needs.

    Raises:
        TileError: T160, a value of another launch's body is used.
    """
    found: set[Operation] = set()
    left: list[tuple[Operation, SSAValue]] = [(op, operand) for op in launch.walk() for operand in op.operands]
    while left:
        user, value = left.pop()
        owner = value.owner if isinstance(value.owner, Operation) else value.owner.parent_op()
        if owner is None or launch.is_ancestor(owner) or owner is launch.parent_op() or owner in found:
            continue
        if owner.parent_block() is not launch.parent_block() or isinstance(owner, tile.LaunchOp):
            raise refuse(user, f"{author_name(value, 'this value')} belongs to another T.Kernel, which has ended", "T160",
                         help="two T.Kernel can share only tensors, and scalars that are computed before both")
        found.add(owner)
        left += [(owner, operand) for operand in owner.operands]
    return found


def _refuse_stale_reads(launches: Sequence[tile.LaunchOp]) -> None:
    """Checks that an element read outside of the launches is unchanged when the launch that uses it starts.

    Raises:
        TileError: T160, an earlier launch writes its tensor in between, or a value of another launch's body is used.
    """
    for launch in launches:
        needed = _ops_needed_by(launch)
        written_later: set[int] = set()
        op: Operation | None = launch.prev_op
        while op is not None:
            if isinstance(op, tile.LaunchOp):
                written_later |= arguments_written_by(op)
            root = root_of(op.memref) if isinstance(op, memref.LoadOp) and op in needed else None
            if isinstance(root, BlockArgument) and root.index in written_later:
                name = author_name(root, "a tensor")
                raise refuse(op, f"this element of {name} is read outside T.Kernel, and overwritten before the T.Kernel at "
                             f"{line_of(launch)} uses it", "T160", help="read the element inside the T.Kernel that uses it")
            op = op.prev_op


@dataclass(frozen=True)
class SplitLaunches(ModulePass):
    """Splits a kernel that has several ``T.Kernel`` launches in sequence into one function for each launch."""

    name = "split-launches"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in [inner for inner in op.ops if isinstance(inner, func.FuncOp)]:
            launches = launches_of(function)
            if len(launches) > 1:
                _refuse_stale_reads(launches)
                names = launch_function_names(function.sym_name.data, len(launches))
                made = [_function_of_launch(function, number, name) for number, name in enumerate(names)]
                Rewriter().replace_op(function, made, [])


__all__ = ["SplitLaunches", "launch_function_names", "launches_of"]
