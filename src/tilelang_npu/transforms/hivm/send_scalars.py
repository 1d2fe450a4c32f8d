"""Sends single elements of UB to the Cube core through a workspace, if operations of the Cube core depend on them.

The scalar unit of one core cannot read registers of the other. So after reading the element, the Vector core stores the number
to a workspace in GM, and the Cube core loads it from the workspace. Until the cores are split, ``tile.by_core`` selects the
value that each core uses. A number that passes through a scalar variable is sent where it is read from UB. ``cross-sync``
inserts the flags around the workspace.

All Vector cores of a block store, and must store the same number. So elements of a tile that depends on the sub-block's index
are not sent. Neither is a number that is read in the condition of a ``while``, where no flag can be inserted. ``split-cores``
refuses kernels whose Cube core needs such a number (T245).
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import func, memref, scf
from xdsl.dialects.builtin import IndexType, MemRefType, ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass

from tilelang_npu.analysis.accessed_bytes import accessed_bytes_of
from tilelang_npu.analysis.cores import core_of, is_mixed, put_core
from tilelang_npu.dialects import hivm, memref_ext, tile
from tilelang_npu.dialects.ir.effects import accesses
from tilelang_npu.transforms.hivm.split_cores import LostOps
from tilelang_npu.transforms.infra.op_builder import OpBuilder


def _values_of_sub_blocks(function: func.FuncOp) -> set[object]:
    """Returns what may differ between the two Vector cores of a block: values, buffers that hold such, and branches and loops
    on such."""
    found: set[object] = set()
    known = -1
    while known != len(found):
        known = len(found)
        for op in function.walk():
            touched = [(access, accessed_bytes_of(access.value).root) for access in accesses(op)]
            read = [root for access, root in touched if not access.writes]
            around = op.parent_op()
            if isinstance(op, hivm.GetSubBlockIdxOp) or any(value in found for value in (*op.operands, *read)) or (
                    isinstance(around, (scf.IfOp, scf.ForOp, scf.WhileOp)) and around in found):
                found.update(op.results)
                found.update(argument for region in op.regions for block in region.blocks for argument in block.args)
                found.update(root for access, root in touched if access.writes)
                if op.regions:
                    found.add(op)
    return found


class _ElementReads:
    """The element reads of UB that the operands of operations come from.

    Attributes:
        found: the reads, in the order in which they were found.
    """

    def __init__(self, function: func.FuncOp) -> None:
        self._function = function
        self._seen: set[object] = set()
        self.found: dict[memref.LoadOp, None] = {}

    def trace_op(self, op: Operation) -> None:
        """Follow the operands of an operation, and the conditions and bounds that decide whether it runs."""
        if op in self._seen or op is self._function:
            return
        self._seen.add(op)
        if isinstance(op, memref.LoadOp) and hivm.space_of(op.memref.type) == "ub":
            self.found[op] = None
            return
        for operand in op.operands:
            self._trace_value(operand)
        if isinstance(op, (scf.IfOp, scf.ForOp, scf.WhileOp)):
            for region in op.regions:
                for block in region.blocks:
                    if block.last_op is not None and block.last_op.operands:
                        self.trace_op(block.last_op)
        if isinstance(op, memref.LoadOp) and hivm.space_of(op.memref.type) not in ("gm", "ub"):
            for use in op.memref.uses:  # a scalar variable: the stores to it, and what decides whether they run
                if isinstance(use.operation, memref.StoreOp):
                    self._trace_value(use.operation.value)
                    around = use.operation.parent_op()
                    while around is not None and around is not self._function:
                        self.trace_op(around)
                        around = around.parent_op()

    def _trace_value(self, value: SSAValue) -> None:
        if isinstance(value.owner, Operation):
            self.trace_op(value.owner)
        else:
            around = value.owner.parent_op()
            if around is not None:
                self.trace_op(around)


def _is_in_while_condition(op: Operation) -> bool:
    """Whether an operation is in the condition of a ``while``, where no flag can be inserted."""
    here: Operation | None = op
    while here is not None:
        around = here.parent_op()
        if isinstance(around, scf.WhileOp) and here.parent_region() is around.before_region:
            return True
        here = around
    return False


def _send(emit: OpBuilder, read: memref.LoadOp) -> None:
    """Send an element by way of a workspace."""
    kind = MemRefType(read.results[0].type, [1], memory_space=hivm.address_space("gm"))
    emit.location = read.location
    with emit.after(read):
        workspace = emit.insert(memref_ext.AllocWorkspaceOp(kind)).results[0]
        workspace.name_hint = "sent"
        zero = emit.constant(0, IndexType())
        store = emit.insert(memref.StoreOp.get(read.results[0], workspace, [zero]))
        received = emit.insert(memref.LoadOp.get(workspace, [zero]))
        put_core(store, "AIV")
        put_core(received, "AIC")
        by_core = emit.insert(tile.ByCoreOp(received.results[0], read.results[0]))
    read.results[0].replace_uses_with_if(by_core.results[0], lambda use: use.operation not in (by_core, store))


@dataclass(frozen=True)
class SendScalars(ModulePass):
    """Sends elements of UB that operations of the Cube core depend on from the Vector core to the Cube core, through GM."""

    name = "send-scalars"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in op.walk():
            if isinstance(function, func.FuncOp) and is_mixed(function):
                self._send_needed(function)

    def _send_needed(self, function: func.FuncOp) -> None:
        sent: set[Operation] = set()
        emit = OpBuilder(function.body.block)
        # a number that is sent may make further work of the Cube core depend on another one
        while True:
            needing = LostOps(function, "AIC").needing_lost_values()
            if not needing:
                return
            reads = _ElementReads(function)
            for op in needing:
                reads.trace_op(op)
            differing = _values_of_sub_blocks(function)
            new = [read for read in reads.found if read not in sent and not _is_in_while_condition(read)
                   and core_of(read) == "AIV" and read.results[0] not in differing]
            if not new:
                return
            for read in new:
                _send(emit, read)
            sent.update(new)
