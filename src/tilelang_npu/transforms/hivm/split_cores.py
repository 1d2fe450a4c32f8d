"""Splits a kernel that uses both cores into one function for the Cube core and one for the Vector core.

Each function keeps the operations that an attribute assigns to its core, and the scalars and the control flow that they depend
on. An on-chip buffer that both cores access is kept in both functions and marked, so that ``plan-memory`` assigns one address.
Names and helper functions follow AscendNPU-IR (``_mix_aic``, ``_mix_aiv``). Each block uses one Vector core with its Cube core.
If the kernel reads the index of the Vector core (``hivm.hir.get_sub_block_idx``), it uses two, or as many as the function
states.

Runs after flags and workspaces are placed and before memory planning, since each core has its own memories.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import dataclass
from itertools import count

from xdsl.context import Context
from xdsl.dialects import func, memref
from xdsl.dialects.builtin import ModuleOp, StringAttr, UnitAttr
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.traits import IsTerminator

from tilelang_npu.analysis.cores import core_of, forget_core, is_mixed, put_core, put_core_of_function
from tilelang_npu.analysis.locations import refuse
from tilelang_npu.analysis.toolchain_arguments import FFTS, toolchain_argument
from tilelang_npu.analysis.view_chains import COUPLED, root_of
from tilelang_npu.dialects import annotation, hivm, tile
from tilelang_npu.dialects.ir.effects import accesses
from tilelang_npu.target.chip_data import CoreKind, OpCore
from tilelang_npu.transforms.hivm.tidy import tidy_function
from tilelang_npu.transforms.infra.host_functions import MIXED_TASK, task_type_function
from tilelang_npu.transforms.infra.pass_marks import remove_marks_of_passes

_CORE_NAMES: dict[CoreKind, str] = {"AIC": "Cube", "AIV": "Vector"}


def _function_of_core(function: func.FuncOp, core: CoreKind) -> func.FuncOp:
    """Returns a copy of a function with the operations of one core only."""
    made = function.clone()
    remove_marks_of_passes(made)
    made.properties["sym_name"] = StringAttr(f"{function.sym_name.data}_mix_{core.lower()}")
    made.attributes["hivm.part_of_mix"] = UnitAttr()
    made.attributes["mix_mode"] = StringAttr("mix")
    for choice in [op for op in made.walk() if isinstance(op, tile.ByCoreOp)]:
        Rewriter().replace_op(choice, [], [choice.cube if core == "AIC" else choice.vector])
    lost = LostOps(made, core).all()
    for op in reversed(lost):
        parent = op.parent_op()
        if parent is not None and parent not in lost:
            Rewriter.erase_op(op, safe_erase=False)
    for op in made.walk():
        forget_core(op)
    put_core_of_function(made, core)  # from here on the function carries it
    tidy_function(made)  # first the views of the other core's buffers go, then the buffers
    for op in [op for op in made.walk() if isinstance(op, memref.AllocOp)]:
        marks = [use.operation for use in op.memref.uses]
        if all(isinstance(mark, annotation.MarkOp) for mark in marks):
            for mark in marks:
                Rewriter.erase_op(mark)
            Rewriter.erase_op(op)
    return made


def _mark_shared_buffers(function: func.FuncOp, numbers: Iterator[int]) -> None:
    """Mark the on-chip buffers that both cores access, so that they have one address in both functions (AscendNPU-IR's mark).
    """
    cores: dict[SSAValue, set[OpCore]] = {}
    for op in function.walk():
        for access in accesses(op):
            root = root_of(access.value)
            if isinstance(root.owner, memref.AllocOp) and core_of(op) != "either":
                cores.setdefault(root, set()).add(core_of(op))
    for root, accessing in cores.items():
        if len(accessing) > 1 and isinstance(root.owner, memref.AllocOp):
            mark = annotation.MarkOp(root)
            mark.attributes[COUPLED] = hivm.TightlyCoupledBufferAttr(next(numbers))
            mark.location = root.owner.location
            Rewriter().insert_op(mark, InsertPoint.after(root.owner))


class LostOps:
    """Finds the *lost* operations: those of a function of both cores that must be removed to get the function of one core.

    Lost operations are the operations of the other core, and those that need a value that only the other core has. Such values
    are the results of lost operations (branches and loops included), and scalar variables that a lost operation writes outside
    of a ``T.Scope``.

    Args:
        function: the function of both cores.
        core: the core whose function is wanted.
    """

    def __init__(self, function: func.FuncOp, core: CoreKind) -> None:
        self.function, self.core = function, core
        self._variables: set[SSAValue] = set()  # written by a lost operation
        self._with_lost_terminator: set[Operation] = set()
        self._needing_lost_values: dict[Operation, None] = {}  # this core's work, which cannot be done

    def all(self) -> dict[Operation, None]:
        """Returns the lost operations in program order, as the keys of a dictionary.

        Raises:
            TileError: T245, a lost operation is or contains an operation of the wanted core, which cannot be removed.
        """
        lost = self._find()
        if self._needing_lost_values:
            here, there = (_CORE_NAMES[core] for core in (("AIC", "AIV") if self.core == "AIC" else ("AIV", "AIC")))
            raise refuse(next(iter(self._needing_lost_values)),
                         f"an operation of the {here} core depends on a scalar that only the {there} core has", "T245",
                         help="read it from GM, which all cores can access, or from a tile whose contents are the same on "
                              "both Vector cores")
        return lost

    def needing_lost_values(self) -> list[Operation]:
        """Returns the operations of the wanted core (or containing such) that need a value which only the other core has."""
        self._find()
        return list(self._needing_lost_values)

    def _find(self) -> dict[Operation, None]:
        # a lost store makes a variable lost, and with it loads before the store: until nothing changes
        while True:
            known = len(self._variables) + len(self._with_lost_terminator)
            lost = self._walk()
            if len(self._variables) + len(self._with_lost_terminator) == known:
                return lost

    def _walk(self) -> dict[Operation, None]:
        lost: dict[Operation, None] = {}
        for op in self.function.walk():
            if op is self.function:
                continue
            if core_of(op) not in (self.core, "either"):
                lost[op] = None
            elif self._needs_lost_value(op, lost):
                if any(core_of(inner) == self.core for inner in op.walk()):
                    self._needing_lost_values[op] = None
                lost[op] = None
                parent = op.parent_op()
                if op.has_trait(IsTerminator) and parent is not None:
                    self._with_lost_terminator.add(parent)
                self._variables.update(inner.memref for inner in op.walk() if isinstance(inner, memref.StoreOp)
                                       and core_of(inner) == "either")
        return lost

    def _needs_lost_value(self, op: Operation, lost: Container[Operation]) -> bool:
        if isinstance(op, tile.ByCoreOp):
            return (op.cube if self.core == "AIC" else op.vector).owner in lost
        variable = isinstance(op, memref.LoadOp) and op.memref in self._variables
        return variable or op in self._with_lost_terminator or any(operand.owner in lost for operand in op.operands)


@dataclass(frozen=True)
class SplitCores(ModulePass):
    """Rewrites each kernel that uses both cores into one function for the Cube core and one for the Vector core."""

    name = "split-cores"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        numbers = count()
        for function in [inner for inner in op.ops if isinstance(inner, func.FuncOp)]:
            if is_mixed(function):
                asks = any(isinstance(inner, hivm.GetSubBlockIdxOp) for inner in function.walk())
                vector_cores = hivm.sub_blocks_of(function) if asks else 1
                first = function.body.block.first_op
                assert first is not None
                base = hivm.SetFftsBaseAddrOp(toolchain_argument(function, FFTS))
                base.location = function.location
                put_core(base, "either")
                Rewriter().insert_op(base, InsertPoint.before(first))
                _mark_shared_buffers(function, numbers)
                task = task_type_function(function.sym_name.data, MIXED_TASK + vector_cores)
                halves = _function_of_core(function, "AIC"), _function_of_core(function, "AIV")
                Rewriter().replace_op(function, [task, *halves], [])
            else:
                for inner in function.walk():
                    forget_core(inner)
