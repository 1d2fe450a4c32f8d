"""Write on every operation which core it runs on, and on every function which cores it is for.

The memories say it: what touches L1 or L0 is the Cube core's, what touches UB the Vector core's, and a copy is its whose way
between the two memories it is. HIVM's ops say it themselves, flags and barriers by their pipes. What leaves it open is the
core's whose ``T.Scope`` it stands in, and either's elsewhere: reads of single elements of GM, loops, branches. A loop or branch
in a ``T.Scope`` is of that core if all in it is. An element that is stored to GM is the Vector core's if the kernel has one.

Runs behind ``infer-scopes``, when all memories are known; again on HIVM behind ``hivm-auto``, whose text says no more than
HIVM's ops say themselves; and on HIVM of other tools. What is written already stays, as does a function that says its one core.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import func, memref, scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from tilelang_npu import target as chips
from tilelang_npu.dialects import hacc, hivm, tile
from tilelang_npu.dialects.ir.declaration import DialectOp
from tilelang_npu.dialects.ir.effects import effects_of
from tilelang_npu.target import Chip
from tilelang_npu.transforms.ir.buffers import space_of
from tilelang_npu.transforms.ir.cores import core_of_function, has_core, noted_core, put_core, put_core_of_function, states_core

_ENDS = {"_mix_aic": "AIC", "_mix_aiv": "AIV"}
"""How AscendNPU-IR ends the names of the halves of a kernel."""
_SCOPES = {"cube": "AIC", "vector": "AIV"}


def told_core(op: Operation, chip: Chip) -> str:
    """The core that an operation says itself, by its memories or its pipes."""
    if isinstance(op, (memref.LoadOp, memref.StoreOp)):
        reads = isinstance(op, memref.LoadOp)
        space = hivm.space_of(op.operands[0 if reads else 1].type)
        return "AIV" if space == "ub" or (space == "gm" and not reads) else "either"
    if isinstance(op, DialectOp) and not op.name.startswith("tile."):
        return op.core()
    if isinstance(op, tile.CallOp):
        return op.entry().core
    if isinstance(op, tile.CopyOp):
        ends = space_of(op.source), space_of(op.target)
        ways = {path.core for path in chip.paths.values() if (path.source, path.target) == ends}
        if len(ways) == 1:
            return ways.pop()
    cores = {chip.memory[space].core for use in effects_of(op) if (space := space_of(use.value)) in chip.memory}
    return "AIC" if "AIC" in cores else "AIV" if cores else "either"


def _is_element_store(op: Operation) -> bool:
    return isinstance(op, memref.StoreOp) and hivm.space_of(op.memref.type) == "gm"


def _is_barrier(op: Operation) -> bool:
    """Whether an operation is a barrier, which an author writes for both cores, also where one has nothing to do."""
    return isinstance(op, (hivm.SyncBlockOp, hivm.PipeBarrierOp))


def _noted(op: Operation) -> str | None:
    core = noted_core(op)
    return None if core == "either" else core


def _is_open(function: func.FuncOp) -> bool:
    """Whether a function is a kernel whose operations do not all run on one core that it names."""
    kernel = "hacc.entry" in function.attributes or any(isinstance(op, tile.LaunchOp) for op in function.walk())
    kind = function.attributes.get("hacc.function_kind")
    host = isinstance(kind, hacc.FunctionKindAttr) and kind.data == "HOST"
    stated = core_of_function(function)
    return bool(function.body.blocks) and not host and (stated == "MIX" or (kernel and stated is None))


def _kind(cores: Iterable[str]) -> str | None:
    """The kind of function that has work of these cores; None where it is either's."""
    found = set(cores) - {"either"}
    return "MIX" if len(found) > 1 else found.pop() if found else None


class _Assignment:
    """Writes the cores of one function."""

    def __init__(self, function: func.FuncOp, chip: Chip) -> None:
        self.function = function
        self.told = {op: _noted(op) or told_core(op, chip) for op in function.walk() if has_core(op)}
        stores = [op for op in self.told if _noted(op) is None and _is_element_store(op)]
        named = next((core for end, core in _ENDS.items() if function.sym_name.data.endswith(end)), None)
        known = core_of_function(function) or named
        self.traced = any(isinstance(op, tile.LaunchOp) for op in function.walk())
        work = [op for op in self.told.keys() - set(stores) if not (self.traced and _is_barrier(op))]
        self.kind = known or _kind(self.told[op] for op in work) or "AIV"
        if self.kind == "AIC":
            self.told.update(dict.fromkeys(stores, "AIC"))

    def run(self) -> None:
        for scope in [op for op in self.function.walk() if isinstance(op, tile.OnCoreOp)]:
            core = _SCOPES[scope.core.data]
            for op in reversed(list(scope.walk())):  # what is in a loop before the loop
                if self._takes(op, core):
                    self.told[op] = core
        lowered = self.kind != "MIX" and not self.traced
        for op, core in self.told.items() if not lowered else ():  # there the function says it
            if not states_core(op):
                put_core(op, core)
        if core_of_function(self.function) is None:
            put_core_of_function(self.function, self.kind)

    def _takes(self, op: Operation, core: str) -> bool:
        """Whether an operation in a ``T.Scope`` is its core's because it leaves it open."""
        if op not in self.told:
            return False
        if isinstance(op, (scf.ForOp, scf.IfOp, scf.WhileOp)):
            return all(self.told.get(inner, "either") in (core, "either") for inner in op.walk() if inner is not op)
        return _is_element_store(op) or (self.told[op] == "either" and not op.results)


@dataclass(frozen=True)
class AssignCores(ModulePass):
    """The pass; see the module's text. ``chip`` has the memories, and the ways between them."""

    name = "assign-cores"
    chip: str = chips.DEFAULT

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        chip = chips.chip(self.chip)
        for function in [inner for inner in op.ops if isinstance(inner, func.FuncOp)]:
            if _is_open(function):
                _Assignment(function, chip).run()
