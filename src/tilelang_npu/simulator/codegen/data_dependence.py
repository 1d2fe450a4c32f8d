"""Finds data-dependent behaviour of a kernel: branches, trip counts and addresses that depend on the contents of tensors.

A kernel without such behaviour executes the same ops, in the same time and with the same hazards, for all data. Its ops, times
and hazards are therefore known without a run on real data. In this module a scalar is called unknown if its value depends on
the contents of memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from xdsl.dialects import arith, memref, scf
from xdsl.dialects.builtin import AnyFloat, IntegerAttr, MemRefType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from tilelang_npu.dialects import hivm
from tilelang_npu.dialects.ir.effects import accesses
from tilelang_npu.dialects.text import location_of
from tilelang_npu.errors import Location
from tilelang_npu.simulator.codegen.handlers import has_effect
from tilelang_npu.simulator.machine.placeholder_data import DataUse, DataUses

STORAGE = (memref.AllocaOp, memref.AllocOp)
"""The ops that allocate scalar storage."""
VIEWS = (memref.SubviewOp, memref.ReinterpretCastOp, memref.ViewOp)
"""The ops that make a view of their first operand."""
_FLAGS = (hivm.SetFlagOp, hivm.WaitFlagOp, hivm.SyncBlockOp, hivm.SyncBlockSetOp, hivm.SyncBlockWaitOp,
          hivm.SyncBlockLockOp, hivm.SyncBlockUnlockOp)


class DataDependence:
    """Finds the statements and values of a device function that depend on the contents of tensors.

    Args:
        function: the function.

    Attributes:
        uses: the statements whose behaviour depends on data, in program order, each once.
        compared: integer constants that the function compares with numbers from memory, or combines with them by arithmetic.
        branches: the data-dependent branches and while loops, each with its number, which is the key of the branch in
            :attr:`PlaceholderData.ways`.
        places: the positions of the kernel arguments that are written at data-dependent addresses, or only under a
            data-dependent condition or trip count.
        differing: the scalars that depend on the block index and not on data.
    """
    def __init__(self, function: FuncOp) -> None:
        unknown = _unknown(function)
        self.uses = list(dict.fromkeys(_uses(function, unknown)))
        self.compared = sorted(set(_compared(function, unknown)))
        self.branches = {op: number for number, op in enumerate(function.walk()) if _condition(op) in unknown}
        self.places = frozenset(_places(function, unknown))
        blocks = {op.results[0] for op in function.walk() if isinstance(op, hivm.GetBlockIdxOp)}
        self.differing = frozenset(_unknown(function, blocks) - unknown) if blocks else frozenset[SSAValue]()

    @property
    def told(self) -> DataUses:
        """``uses`` and ``compared``, as an object without references to IR, which can be stored without the module."""
        return DataUses(tuple(self.uses), tuple(self.compared))


def data_dependent_loops(function: FuncOp) -> frozenset[Operation]:
    """Returns the counted loops of a device function whose trip count depends on data."""
    unknown = _unknown(function)
    return frozenset(op for op in function.walk() if isinstance(op, scf.ForOp) and _has_open_length(op, unknown))


def _has_open_length(op: scf.ForOp, unknown: set[SSAValue]) -> bool:
    return any(bound in unknown for bound in (op.lb, op.ub, op.step))


def _condition(op: Operation) -> SSAValue | None:
    """Returns the condition of a branch or a while loop."""
    if isinstance(op, scf.IfOp):
        return op.cond
    if isinstance(op, scf.WhileOp):
        last = op.before_region.block.last_op
        return last.operands[0] if last is not None else None
    return None


def _is_storage(value: SSAValue) -> bool:
    return isinstance(value.owner, STORAGE)


def _unknown(function: FuncOp, origins: Iterable[SSAValue] = ()) -> set[SSAValue]:
    """Returns the scalars whose values depend, through data flow or control flow, on the contents of memory or on ``origins``.
    """
    found: set[SSAValue] = set(origins)
    before = -1
    while len(found) != before:  # values flow around loops and through the core's own storage
        before = len(found)
        for op in function.walk():
            if isinstance(op, memref.LoadOp) and (not _is_storage(op.operands[0]) or op.operands[0] in found):
                found.update(op.results)
            elif isinstance(op, memref.StoreOp) and _is_storage(op.operands[1]):
                if op.operands[0] in found or _inside_unknown(op, found):
                    found.add(op.operands[1])
            elif op.regions:
                _through_regions(op, found)
            elif has_effect(op) and not isinstance(op, (memref.LoadOp, memref.StoreOp)):
                if op.results and not _is_storage(op.results[0]):
                    found.update(op.results)  # a number that an op computes from memory
            elif not isinstance(op, memref.LoadOp) and any(
                    operand in found and not _is_storage(operand) for operand in op.operands):
                found.update(op.results)
    return found


def _inside_unknown(op: Operation, found: set[SSAValue], *, loops: bool = False) -> bool:
    """Whether a condition around an op is unknown, so that the contents of memory decide whether the op runs.

    Args:
        op: the op.
        found: the unknown scalars.
        loops: whether an unknown trip count of a counted loop around the op counts too.
    """
    parent = op.parent_op()
    while parent is not None:
        if _condition(parent) in found or (loops and isinstance(parent, scf.ForOp) and _has_open_length(parent, found)):
            return True
        parent = parent.parent_op()
    return False


def _places(function: FuncOp, unknown: set[SSAValue]) -> Iterator[int]:
    """Yields the positions of the kernel arguments that are written at unknown addresses, or under an unknown condition."""
    for op in function.walk():
        for access in accesses(op):
            if not access.writes:
                continue
            chosen = _inside_unknown(op, unknown, loops=True) or (
                isinstance(op, memref.StoreOp) and any(index in unknown for index in op.indices))
            pending = [access.value]
            while pending:  # through views, and selects between them
                value = pending.pop()
                if isinstance(value.owner, Operation):
                    pending += [operand for operand in value.owner.operands if isinstance(operand.type, MemRefType)]
                    chosen |= any(operand in unknown for operand in value.owner.operands)
                elif chosen and isinstance(value, BlockArgument) and value.owner is function.body.block:
                    yield value.index


def _through_regions(op: Operation, found: set[SSAValue]) -> None:
    """Adds to ``found`` the block arguments and results of a loop or branch that are unknown."""

    def hand(sources: Sequence[SSAValue], targets: Sequence[SSAValue], *, chosen: bool = False) -> None:
        found.update(target for source, target in zip(sources, targets, strict=False) if chosen or source in found)

    def ends(block: Block) -> Sequence[SSAValue]:
        return block.last_op.operands if block.last_op is not None else ()

    if isinstance(op, scf.ForOp):
        body = op.body.block
        chosen = _has_open_length(op, found)
        if chosen:
            found.add(body.args[0])
        for sources in (op.iter_args, ends(body)):
            hand(sources, body.args[1:])
            hand(sources, op.results, chosen=chosen)
    elif isinstance(op, scf.WhileOp):
        first, second = op.before_region.block, op.after_region.block
        chosen = _condition(op) in found
        for sources in (op.arguments, ends(second)):
            hand(sources, first.args)
        hand(ends(first)[1:], second.args)
        hand(ends(first)[1:], op.results, chosen=chosen)
    else:
        for region in op.regions:
            if region.blocks:
                hand(ends(region.block), op.results, chosen=_condition(op) in found)


def _uses(function: FuncOp, unknown: set[SSAValue]) -> Iterator[DataUse]:
    for number, op in enumerate(function.walk()):
        if isinstance(op, scf.ForOp) and _has_open_length(op, unknown):
            yield DataUse("trips", location_of(op))
        elif _condition(op) in unknown:
            yield DataUse("trips" if isinstance(op, scf.WhileOp) else "branch", location_of(op), number)
        elif isinstance(op, VIEWS):
            if any(operand in unknown for operand in op.operands[1:]):
                yield DataUse("place", _used_at(op))
        elif isinstance(op, (memref.LoadOp, memref.StoreOp)):
            first = 1 if isinstance(op, memref.LoadOp) else 2
            if any(operand in unknown for operand in op.operands[first:]):
                yield DataUse("place", location_of(op))
        elif isinstance(op, (scf.ForOp, scf.WhileOp, scf.IfOp)):
            continue  # values that the op carries are used where an op in it, or after it, uses them
        elif has_effect(op) and any(operand in unknown and not isinstance(operand.type, AnyFloat) for operand in op.operands):
            yield DataUse("flag" if isinstance(op, _FLAGS) else "extent", location_of(op))


def _used_at(op: Operation) -> Location | None:
    """Returns the source line of the first op that uses a view.

    The location of the view itself is where the compiler created the view, which is possibly another line.
    """
    user = next(iter(op.results[0].uses), None)
    return (location_of(user.operation) if user is not None else None) or location_of(op)


def _compared(function: FuncOp, unknown: set[SSAValue]) -> Iterator[int]:
    """Yields the integer constants that are operands of an ``arith`` op together with an unknown scalar."""
    for op in function.walk():
        if op.dialect_name() == "arith" and any(operand in unknown for operand in op.operands):
            for operand in op.operands:
                source = operand.owner
                if isinstance(source, arith.ConstantOp) and isinstance(source.value, IntegerAttr):
                    yield source.value.value.data
