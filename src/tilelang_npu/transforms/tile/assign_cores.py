"""Writes on every operation the core that executes it, and on every kernel the kinds of cores that it runs on.

The core follows from the memories of the operation. An operation on L1 or L0 belongs to the Cube core, an operation on UB to
the Vector cores, and a copy to the core that has a path between the two memories. Operations of HIVM imply their cores, flags
and barriers by their pipes. Nothing implies the core of a load of a single element of GM, of a loop or of a branch: such an
operation belongs to the core of the ``T.Scope`` that contains it, or to either core outside of a ``T.Scope``. A loop or a
branch in a ``T.Scope`` belongs to that core only if all operations in it do. A store of a single element to GM belongs to the
Vector cores, unless the kernel runs on the Cube core alone.

If the chip does not have two Vector cores for each Cube core, a function that asks for the index of its Vector core gets an
attribute with the number of Vector cores.

The pass runs after ``infer-scopes``, when all memories are known; again after ``hivm-auto``, which lowers to HIVM; and on HIVM
that other tools wrote. A core that an operation already states is kept. A function that states a single kind of core is left
unchanged.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import func, memref, scf
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i64
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from tilelang_npu import target as chips
from tilelang_npu.analysis.cores import (
    core_of_function,
    has_core,
    inherent_core,
    noted_core,
    put_core,
    put_core_of_function,
    states_core,
)
from tilelang_npu.dialects import hacc, hivm, tile
from tilelang_npu.target import Chip
from tilelang_npu.target.chip_data import CoreKind, FunctionCore, OpCore

_NAME_SUFFIXES: dict[str, CoreKind] = {"_mix_aic": "AIC", "_mix_aiv": "AIV"}
"""The suffixes that AscendNPU-IR gives the names of the two functions of a kernel, with their cores."""
_SCOPES: dict[str, CoreKind] = {"cube": "AIC", "vector": "AIV"}


def _is_element_store(op: Operation) -> bool:
    return isinstance(op, memref.StoreOp) and hivm.space_of(op.memref.type) == "gm"


def _stated_core(op: Operation) -> OpCore | None:
    core = noted_core(op)
    return None if core == "either" else core


def _is_open(function: func.FuncOp) -> bool:
    """Whether a function is a kernel that does not state one core for all its operations."""
    kernel = "hacc.entry" in function.attributes or any(isinstance(op, tile.LaunchOp) for op in function.walk())
    kind = function.attributes.get("hacc.function_kind")
    host = isinstance(kind, hacc.FunctionKindAttr) and kind.data == "HOST"
    stated = core_of_function(function)
    return bool(function.body.blocks) and not host and (stated == "MIX" or (kernel and stated is None))


class _Assignment:
    """Writes the cores of one function."""

    def __init__(self, function: func.FuncOp, chip: Chip) -> None:
        self.function = function
        self.core_by_op: dict[Operation, OpCore] = {
            op: _stated_core(op) or inherent_core(op, chip) for op in function.walk() if has_core(op)}
        stores = {op for op in self.core_by_op if _stated_core(op) is None and _is_element_store(op)}
        named = next((core for end, core in _NAME_SUFFIXES.items() if function.sym_name.data.endswith(end)), None)
        known = core_of_function(function) or named
        self.traced = any(isinstance(op, tile.LaunchOp) for op in function.walk())
        # Authors write barriers for both cores, even where one core has no work.
        cores = {core for op, core in self.core_by_op.items() if core != "either" and op not in stores
                 and not (self.traced and isinstance(op, (hivm.SyncBlockOp, hivm.PipeBarrierOp)))}
        self.kind: FunctionCore = known or ("MIX" if len(cores) > 1 else cores.pop() if cores else "AIV")
        if self.kind == "AIC":
            self.core_by_op.update(dict.fromkeys(stores, "AIC"))

    def write_cores(self) -> None:
        for scope in [op for op in self.function.walk() if isinstance(op, tile.OnCoreOp)]:
            scope_core = _SCOPES[scope.core.data]
            for op in reversed(list(scope.walk())):  # the operations of a loop before the loop
                if self._follows_scope(op, scope_core):
                    self.core_by_op[op] = scope_core
        lowered = self.kind != "MIX" and not self.traced
        # In a lowered function of one core, the function states it.
        for op, core in self.core_by_op.items() if not lowered else ():
            if not states_core(op):
                put_core(op, core)
        if core_of_function(self.function) is None:
            put_core_of_function(self.function, self.kind)

    def _follows_scope(self, op: Operation, core: CoreKind) -> bool:
        """Whether an operation in a ``T.Scope`` is of the scope's core because nothing else implies its core."""
        if op not in self.core_by_op:
            return False
        if isinstance(op, (scf.ForOp, scf.IfOp, scf.WhileOp)):
            return all(self.core_by_op.get(inner, "either") in (core, "either") for inner in op.walk() if inner is not op)
        return _is_element_store(op) or (self.core_by_op[op] == "either" and not op.results)


@dataclass(frozen=True)
class AssignCores(ModulePass):
    """Writes on every operation the core that executes it, and on every kernel the kinds of cores that it runs on.

    Attributes:
        chip: the name of the chip, which determines the memories of each core and the paths between memories.
    """

    name = "assign-cores"
    chip: str = chips.DEFAULT

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        chip = chips.chip(self.chip)
        for function in [inner for inner in op.ops if isinstance(inner, func.FuncOp)]:
            if _is_open(function):
                _Assignment(function, chip).write_cores()
            asks = chip.aiv_per_aic != 2 and any(isinstance(inner, hivm.GetSubBlockIdxOp) for inner in function.walk())
            if asks and hivm.SUB_BLOCKS not in function.attributes:
                function.attributes[hivm.SUB_BLOCKS] = IntegerAttr(chip.aiv_per_aic, i64)
