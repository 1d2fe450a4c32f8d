"""Make a function of each launch where a kernel has several ``T.Kernel`` one behind the other.

The functions are called ``NAME_1``, ``NAME_2``, ... in the order of the launches, take the same arguments, and are launched in
that order: all blocks of one have ended before the first of the next begins. The scalars that stand above and between the
launches are computed in each function that needs them. That is all the same for what is computed from sizes and numbers; an
element of a tensor is read when the launch begins that uses it, so it is refused where an earlier launch has overwritten it by
then and the author read it before. Tensors that hold nothing when the first launch begins (``tile.scratch``) hold what it wrote
when the next one does, and are no workspaces (``tile.workspace``) of either's own.

Runs first: everything below works on functions of one launch.
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

from tilelang_npu.dialects import tile
from tilelang_npu.dialects.ir.effects import effects_of
from tilelang_npu.dialects.text.names import author_name
from tilelang_npu.transforms.ir.buffers import root_of, walk
from tilelang_npu.transforms.ir.launch_names import names_of
from tilelang_npu.transforms.ir.locations import line_of, refuse


def launches_of(function: func.FuncOp) -> list[tile.LaunchOp]:
    """The launches of a kernel, in order."""
    return [op for op in function.body.block.ops if isinstance(op, tile.LaunchOp)] if function.body.blocks else []


def written_by(launch: tile.LaunchOp) -> set[int]:
    """The positions of the arguments that a launch writes."""
    roots = (root_of(use.value) for op in walk(launch.body.block) for use in effects_of(op) if use.writes)
    return {root.index for root in roots if isinstance(root, BlockArgument) and isinstance(root.block.parent_op(), func.FuncOp)}


def _used_by(launch: tile.LaunchOp) -> set[int]:
    """The positions of the arguments that a launch has to do with."""
    return {operand.index for op in walk(launch.body.block) for operand in op.operands
            if isinstance(operand, BlockArgument) and isinstance(operand.block.parent_op(), func.FuncOp)}


def _alone(function: func.FuncOp, number: int, name: str) -> func.FuncOp:
    """The function with one of its launches, and of the rest what that needs."""
    made = function.clone()
    made.properties["sym_name"] = StringAttr(name)
    launches = launches_of(made)
    written = {position for launch in launches[:number] for position in written_by(launch)}
    others = {position for at, launch in enumerate(launches) if at != number for position in _used_by(launch)}
    if made.arg_attrs is not None:
        made.properties["arg_attrs"] = ArrayAttr([
            _without(each, {tile.SCRATCH} if position in written else set(), {tile.WORKSPACE} if position in others else set())
            for position, each in enumerate(made.arg_attrs.data)])
    made.location = launches[number].location
    for launch in [*launches[:number], *launches[number + 1:]]:
        Rewriter.erase_op(launch)
    for op in reversed(list(made.body.block.ops)):
        if op.results and all(result.first_use is None for result in op.results):
            Rewriter.erase_op(op)
    return made


def _without(given: DictionaryAttr, *names: set[str]) -> DictionaryAttr:
    """The attributes of an argument that do not hold of it in one launch: others have written it, or will read it."""
    return DictionaryAttr({name: value for name, value in given.data.items() if not any(name in each for each in names)})


def _needed(launch: tile.LaunchOp) -> set[Operation]:
    """The operations of the function that a launch needs a value of.

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
                         help="what two of them share is a tensor, or a scalar that is computed above both")
        found.add(owner)
        left += [(owner, operand) for operand in owner.operands]
    return found


def _check_reads(launches: Sequence[tile.LaunchOp]) -> None:
    """An element that is read outside of the launches must be the same when the launch begins that uses it.

    Raises:
        TileError: T160, an earlier launch writes its tensor in between, or what is used belongs to another launch.
    """
    for launch in launches:
        needed = _needed(launch)
        behind: set[int] = set()
        op: Operation | None = launch.prev_op
        while op is not None:
            if isinstance(op, tile.LaunchOp):
                behind |= written_by(op)
            root = root_of(op.memref) if isinstance(op, memref.LoadOp) and op in needed else None
            if isinstance(root, BlockArgument) and root.index in behind:
                name = author_name(root, "a tensor")
                raise refuse(op, f"this element of {name} is read outside T.Kernel, and overwritten before the T.Kernel at "
                             f"{line_of(launch)} uses it", "T160", help="read it inside the T.Kernel that uses it")
            op = op.prev_op


@dataclass(frozen=True)
class SplitLaunches(ModulePass):
    """The pass; see the module's text."""

    name = "split-launches"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in [inner for inner in op.ops if isinstance(inner, func.FuncOp)]:
            launches = launches_of(function)
            if len(launches) > 1:
                _check_reads(launches)
                names = names_of(function.sym_name.data, len(launches))
                Rewriter().replace_op(function, [_alone(function, number, name) for number, name in enumerate(names)], [])


__all__ = ["SplitLaunches", "launches_of", "names_of", "written_by"]
