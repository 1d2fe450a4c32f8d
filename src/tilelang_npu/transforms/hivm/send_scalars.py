"""Send single elements of UB to the Cube core whose work depends on them.

No path leads from one scalar unit to the other. So behind the read the Vector core stores the number to a workspace, and
the Cube core reads it from there; ``tile.by_core`` says which core has it from where, until the cores are split. Numbers
that go through a variable are sent where they are read from UB. The flags around the workspace are ``cross-sync``'s.

Both Vector cores of a block send, and must send the same: a tile that holds what depends on the sub-block's index is not
sent from, nor is what the condition of a ``while`` reads. ``split-cores`` refuses these (T245).
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import func, memref, scf
from xdsl.dialects.builtin import IndexType, MemRefType, ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass

from tilelang_npu.dialects import hivm, memref_ext, tile
from tilelang_npu.dialects.ir.effects import accesses
from tilelang_npu.transforms.hivm.split_cores import Lost
from tilelang_npu.transforms.hivm.sync.bytes import place_of
from tilelang_npu.transforms.ir.cores import core_of, is_mixed, put_core
from tilelang_npu.transforms.ir.emit import OpBuilder


def _root(value: SSAValue) -> object:
    return place_of(value).root


class _Halves:
    """What may differ between the two Vector cores of a block: values, and the memories that hold such."""

    def __init__(self, function: func.FuncOp) -> None:
        self.found: set[object] = set()
        known = -1
        while known != len(self.found):
            known = len(self.found)
            for op in function.walk():
                self._add(op)

    def _add(self, op: Operation) -> None:
        touched = list(accesses(op))
        read = [_root(access.value) for access in touched if not access.writes]
        around = op.parent_op()
        if isinstance(op, hivm.GetSubBlockIdxOp) or any(value in self.found for value in (*op.operands, *read)) or (
                isinstance(around, (scf.IfOp, scf.ForOp, scf.WhileOp)) and around in self.found):
            self.found.update(op.results)
            self.found.update(argument for region in op.regions for block in region.blocks for argument in block.args)
            self.found.update(_root(access.value) for access in touched if access.writes)
            if op.regions:
                self.found.add(op)


class _Reads:
    """The element reads of UB that values come from."""

    def __init__(self, function: func.FuncOp) -> None:
        self._function = function
        self._seen: set[object] = set()
        self.found: dict[memref.LoadOp, None] = {}

    def behind(self, op: Operation) -> None:
        """Follow what an operation needs, and whether it runs."""
        if op in self._seen or op is self._function:
            return
        self._seen.add(op)
        if isinstance(op, memref.LoadOp) and hivm.space_of(op.memref.type) == "ub":
            self.found[op] = None
            return
        for operand in op.operands:
            self._value(operand)
        if isinstance(op, (scf.IfOp, scf.ForOp, scf.WhileOp)):
            for region in op.regions:
                for block in region.blocks:
                    if block.last_op is not None and block.last_op.operands:
                        self.behind(block.last_op)
        if isinstance(op, memref.LoadOp) and hivm.space_of(op.memref.type) not in ("gm", "ub"):
            for use in op.memref.uses:  # a variable
                if isinstance(use.operation, memref.StoreOp):
                    self._stored(use.operation)

    def _stored(self, store: memref.StoreOp) -> None:
        self._value(store.value)
        around = store.parent_op()
        while around is not None and around is not self._function:
            self.behind(around)
            around = around.parent_op()

    def _value(self, value: SSAValue) -> None:
        if isinstance(value.owner, Operation):
            self.behind(value.owner)
        else:
            around = value.owner.parent_op()
            if around is not None:
                self.behind(around)


def _in_condition(op: Operation) -> bool:
    """Whether an operation stands in the condition of a ``while``, where no flag can."""
    here: Operation | None = op
    while here is not None:
        around = here.parent_op()
        if isinstance(around, scf.WhileOp) and here.parent_region() is around.before_region:
            return True
        here = around
    return False


def _send(emit: OpBuilder, read: memref.LoadOp) -> None:
    kind = MemRefType(read.results[0].type, [1], memory_space=hivm.address_space("gm"))
    emit.location = read.location
    with emit.after(read):
        room = emit.insert(memref_ext.AllocWorkspaceOp(kind)).results[0]
        room.name_hint = "sent"
        zero = emit.constant(0, IndexType())
        store = emit.insert(memref.StoreOp.get(read.results[0], room, [zero]))
        received = emit.insert(memref.LoadOp.get(room, [zero]))
        put_core(store, "AIV")
        put_core(received, "AIC")
        either = emit.insert(tile.ByCoreOp(received.results[0], read.results[0]))
    read.results[0].replace_uses_with_if(either.results[0], lambda use: use.operation not in (either, store))


@dataclass(frozen=True)
class SendScalars(ModulePass):
    """The pass; see the module's text."""

    name = "send-scalars"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in op.walk():
            if isinstance(function, func.FuncOp) and is_mixed(function):
                self._function(function)

    def _function(self, function: func.FuncOp) -> None:
        sent: set[Operation] = set()
        emit = OpBuilder(function.body.block)
        while True:
            foreign = Lost(function, "AIC").foreign()
            if not foreign:
                return
            reads = _Reads(function)
            for op in foreign:
                reads.behind(op)
            halves = _Halves(function)
            new = [read for read in reads.found if read not in sent and not _in_condition(read)
                   and core_of(read) == "AIV" and read.results[0] not in halves.found]
            if not new:
                return
            for read in new:
                _send(emit, read)
            sent.update(new)
