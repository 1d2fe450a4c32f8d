"""Compilation of the device functions of a module to Python, in the forms that compute, trace, batch, step and observe them.

A process that has compiled functions, such as those of the cache, needs neither this file nor the module.
"""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects import arith, memref, scf
from xdsl.dialects.builtin import DictionaryAttr, IndexType, IntegerAttr, IntegerType, MemRefType, UnrankedMemRefType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, SSAValue
from xdsl.utils.hints import isa

from tilelang_npu.dialects.hacc import ArgTypeAttr
from tilelang_npu.dialects.ir.effects import EffectsOp
from tilelang_npu.dialects.text import location_of
from tilelang_npu.dialects.text.names import author_name
from tilelang_npu.errors import TileError
from tilelang_npu.simulator.codegen import PythonEmitter
from tilelang_npu.simulator.codegen.batched_emitter import BatchedEmitter
from tilelang_npu.simulator.codegen.data_dependence import DataDependence
from tilelang_npu.simulator.codegen.per_block_scalars import UnbatchableFunctionError, find_per_block_scalars
from tilelang_npu.simulator.codegen.strided_views import element_of
from tilelang_npu.simulator.codegen.tracing_emitter import TracingEmitter
from tilelang_npu.simulator.machine.batch_layout import OnChipFlow
from tilelang_npu.simulator.run.arguments import GRID, FunctionParameter, Role
from tilelang_npu.simulator.run.compiled_function import BatchedFunction, CompiledFunction, TracedFunction
from tilelang_npu.target import Chip
from tilelang_npu.target.dtypes import dtype

Form = Callable[[FuncOp, str, Chip, int], PythonEmitter]
"""Makes an emitter for a function, its core, the chip and the number of sub-blocks."""
_ROLES: dict[str, Role] = {"ffts_base_address": "ffts", "sync_block_lock": "lock", "workspace": "workspace"}
_GRID_TYPE = IntegerType(32)


def compile_function(function: FuncOp, core: str, chip: Chip, parallel: int, form: Form = PythonEmitter) -> CompiledFunction:
    """Compiles a device function.

    Args:
        function: the function.
        core: ``AIC`` or ``AIV``.
        chip: the chip that it runs on.
        parallel: sub-blocks that run it.
        form: makes the emitter; by default of code that computes in program order.
    """
    return CompiledFunction(_emitted(form(function, core, chip, parallel)))


def compile_traced(function: FuncOp, core: str, chip: Chip, parallel: int) -> TracedFunction:
    """Compiles a device function that records its ops and computes nothing."""
    data = DataDependence(function)
    return TracedFunction(_emitted(TracingEmitter(data, function, core, chip, parallel)), data.told)


def compile_batched(function: FuncOp, core: str, chip: Chip, parallel: int) -> BatchedFunction | None:
    """Compiles a device function that runs many blocks at once; None where its blocks cannot."""
    flow = OnChipFlow()
    try:
        has_own = bool(find_per_block_scalars(function))
        emitter = _emitted(BatchedEmitter(flow, function, core, chip, parallel))
    except UnbatchableFunctionError:
        return None
    return BatchedFunction(emitter, flow, has_own=has_own)


def _emitted(emitter: PythonEmitter) -> PythonEmitter:
    """Generates all lines of a function."""
    emitter.emit_block(emitter.function.body.block)
    emitter.flush()
    return emitter


def data_dependent_arguments(function: FuncOp) -> frozenset[int]:
    """Returns the arguments that are written at data-dependent places."""
    return DataDependence(function).places


def parameters(function: FuncOp) -> list[FunctionParameter]:
    """Returns the parameters of a device function. Grid arguments still have the role ``user``; ``index`` becomes int64.

    Raises:
        TileError: T501, a parameter has a type that no argument can have.
    """
    attributes = function.arg_attrs.data if function.arg_attrs is not None else ()
    made = []
    for index, argument in enumerate(function.body.block.args):
        given = attributes[index] if index < len(attributes) else DictionaryAttr({})
        kind = given.data.get("hacc.arg_type")
        role = _ROLES.get(kind.data, "user") if isinstance(kind, ArgTypeAttr) else "user"
        shape = tuple(argument.type.get_shape()) if isa(argument.type, MemRefType) else None
        if isinstance(argument.type, UnrankedMemRefType):
            raise TileError(f"argument {author_name(argument, str(index))} is a buffer without a rank: {argument.type}",
                            code="T501",
                            location=location_of(function), help="declare it with open sizes: memref<?xf16>")
        element = dtype("int64") if isinstance(argument.type, IndexType) else element_of(argument.type)
        made.append(FunctionParameter(index, author_name(argument, f"arg{index}"), role, shape, element))
    return made


def has_grid(function: FuncOp, declared: list[FunctionParameter]) -> bool:
    """Whether the last parameters are the three sizes of the grid."""
    last = declared[-GRID:]
    return len(last) == GRID and all(
        parameter.role == "user" and parameter.shape is None and
        function.body.block.args[parameter.index].type == _GRID_TYPE for parameter in last)


def ops_at_least(block: Block) -> int:
    """Returns a lower bound of the ops that code issues, from constant trip counts."""
    total = 0
    for op in block.ops:
        if isinstance(op, scf.ForOp):
            first, end, step = (_constant(value) for value in (op.lb, op.ub, op.step))
            known = first is not None and end is not None and step
            total += (len(range(first or 0, end or 0, step or 1)) if known else 1) * ops_at_least(op.body.block)
        elif isinstance(op, (EffectsOp, memref.LoadOp, memref.StoreOp)):
            total += 1
    return total


def _constant(value: SSAValue) -> int | None:
    owner = value.owner
    return owner.value.value.data if isinstance(owner, arith.ConstantOp) and isinstance(owner.value, IntegerAttr) else None
