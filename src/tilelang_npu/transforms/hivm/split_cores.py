"""Split the kernel of both cores into one function per core.

Each function keeps the operations of its core (they say which that is), and the scalars and the control flow that
these depend on. Runs after flags and workspaces are placed, before planning: each core has its own memories. An on-chip buffer
that both reach stays in both functions, marked, so that the planner gives it one address. Names and
helper functions follow AscendNPU-IR (``_mix_aic``, ``_mix_aiv``). A block takes one Vector core beside its Cube core,
or two where the kernel asks which of them it is (``hivm.hir.get_sub_block_idx``).
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

from tilelang_npu.dialects import annotation, hivm, tile
from tilelang_npu.dialects.ir.effects import accesses
from tilelang_npu.transforms.hivm.host_functions import task_type_function
from tilelang_npu.transforms.hivm.tidy import tidy_function
from tilelang_npu.transforms.hivm.toolchain_arguments import FFTS, toolchain_argument
from tilelang_npu.transforms.ir.cores import core_of, forget_core, is_mixed, put_core, put_core_of_function
from tilelang_npu.transforms.ir.lifetimes import COUPLED, root_of
from tilelang_npu.transforms.ir.locations import refuse
from tilelang_npu.transforms.ir.treated import release

_SPOKEN = {"AIC": "Cube", "AIV": "Vector"}
TASK_ONE_VECTOR, TASK_TWO_VECTORS = 31, 32  # docs/hivm.md#arguments


def _half(function: func.FuncOp, core: str) -> func.FuncOp:
    """The function with the operations of one core only."""
    made = function.clone()
    release(made)
    made.properties["sym_name"] = StringAttr(f"{function.sym_name.data}_mix_{core.lower()}")
    made.attributes["hivm.part_of_mix"] = UnitAttr()
    made.attributes["mix_mode"] = StringAttr("mix")
    for choice in [op for op in made.walk() if isinstance(op, tile.ByCoreOp)]:
        Rewriter().replace_op(choice, [], [choice.cube if core == "AIC" else choice.vector])
    lost = Lost(made, core).found()
    for op in reversed(lost):
        parent = op.parent_op()
        if parent is not None and parent not in lost:
            Rewriter.erase_op(op, safe_erase=False)
    for op in made.walk():
        forget_core(op)
    put_core_of_function(made, core)  # from here on the function says it
    tidy_function(made)  # views of buffers of the other core go first
    for op in [op for op in made.walk() if isinstance(op, memref.AllocOp)]:
        marks = [use.operation for use in op.memref.uses]
        if all(isinstance(mark, annotation.MarkOp) for mark in marks):  # a buffer of the other core, with several slots
            for mark in marks:
                Rewriter.erase_op(mark)
            Rewriter.erase_op(op)
    return made


def couple(function: func.FuncOp, numbers: Iterator[int]) -> None:
    """Mark the on-chip buffers that both cores reach, so that they have one address in both functions (AscendNPU-IR's mark)."""
    cores: dict[SSAValue, set[str]] = {}
    for op in function.walk():
        for access in accesses(op):
            root = root_of(access.value)
            if isinstance(root.owner, memref.AllocOp) and core_of(op) != "either":
                cores.setdefault(root, set()).add(core_of(op))
    for root, reached in cores.items():
        if len(reached) > 1 and isinstance(root.owner, memref.AllocOp):
            mark = annotation.MarkOp(root)
            mark.attributes[COUPLED] = hivm.TightlyCoupledBufferAttr(next(numbers))
            mark.location = root.owner.location
            Rewriter().insert_op(mark, InsertPoint.after(root.owner))


class Lost:
    """The operations of a function that one of its cores does not have.

    These are the other core's, and what needs a value that only the other core has. A scalar variable (one that no
    ``T.Scope`` keeps to a core) is such a value too where something lost writes it; so is what a lost branch or loop yields.
    """

    def __init__(self, function: func.FuncOp, core: str) -> None:
        self.function, self.core = function, core
        self.variables: set[SSAValue] = set()
        self.without_end: set[Operation] = set()
        """Operations whose terminators need something that is lost."""
        self._foreign: dict[Operation, None] = {}

    def found(self) -> dict[Operation, None]:
        """The operations, in order.

        Raises:
            TileError: T245 one of them holds work of this core.
        """
        lost = self._settled()
        if self._foreign:
            here, there = (_SPOKEN[core] for core in (("AIC", "AIV") if self.core == "AIC" else ("AIV", "AIC")))
            raise refuse(next(iter(self._foreign)), f"{here} work here depends on a scalar that only the {there} core has",
                         "T245",
                         help="read it from GM, which all cores see, or from a tile that is the same on both Vector cores")
        return lost

    def foreign(self) -> list[Operation]:
        """Those that hold work of this core: they need what only the other core has."""
        self._settled()
        return list(self._foreign)

    def _settled(self) -> dict[Operation, None]:
        while True:
            known = len(self.variables) + len(self.without_end)
            lost = self._walk()
            if len(self.variables) + len(self.without_end) == known:
                return lost

    def _walk(self) -> dict[Operation, None]:
        lost: dict[Operation, None] = {}
        for op in self.function.walk():
            if op is self.function:
                continue
            if core_of(op) not in (self.core, "either"):
                lost[op] = None
            elif self._needs(op, lost):
                if any(core_of(inner) == self.core for inner in op.walk()):
                    self._foreign[op] = None
                lost[op] = None
                parent = op.parent_op()
                if op.has_trait(IsTerminator) and parent is not None:
                    self.without_end.add(parent)
                self.variables.update(inner.memref for inner in op.walk() if isinstance(inner, memref.StoreOp)
                                      and core_of(inner) == "either")
        return lost

    def _needs(self, op: Operation, lost: Container[Operation]) -> bool:
        """Whether an operation needs what only the other core has."""
        if isinstance(op, tile.ByCoreOp):
            return (op.cube if self.core == "AIC" else op.vector).owner in lost
        variable = isinstance(op, memref.LoadOp) and op.memref in self.variables
        return variable or op in self.without_end or any(operand.owner in lost for operand in op.operands)


@dataclass(frozen=True)
class SplitCores(ModulePass):
    """The pass; see the module's text."""

    name = "split-cores"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        numbers = count()
        for function in [inner for inner in op.ops if isinstance(inner, func.FuncOp)]:
            if is_mixed(function):
                two = any(isinstance(inner, hivm.GetSubBlockIdxOp) for inner in function.walk())
                first = function.body.block.first_op
                assert first is not None
                base = hivm.SetFftsBaseAddrOp(toolchain_argument(function, FFTS))
                base.location = function.location
                put_core(base, "either")
                Rewriter().insert_op(base, InsertPoint.before(first))
                couple(function, numbers)
                task = task_type_function(function.sym_name.data, TASK_TWO_VECTORS if two else TASK_ONE_VECTOR)
                Rewriter().replace_op(function, [task, _half(function, "AIC"), _half(function, "AIV")], [])
            else:
                for inner in function.walk():
                    forget_core(inner)
