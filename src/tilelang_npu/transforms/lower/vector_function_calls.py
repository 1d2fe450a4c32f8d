"""Lowers a vector function to a function with the attribute ``hivm.vector_function``, and a call of it.

AscendNPU-IR outlines vector functions in the same form (``hivm.vector_function`` in its tests of plan-memory): the function has
the buffers in UB and the scalars as parameters, and its body consists of ops of ``vector``, ``arith``, ``math`` and ``scf``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdsl.dialects import func, memref
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, MemRefType, UnitAttr
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import Rewriter

from tilelang_npu.analysis.cores import forget_core, put_core_of_function
from tilelang_npu.analysis.locations import refuse
from tilelang_npu.dialects import hivm, tile
from tilelang_npu.dialects.ir.effects import VECTOR_FUNCTION
from tilelang_npu.dialects.tile.vector_function import loads_of, stores_of
from tilelang_npu.target import chips
from tilelang_npu.transforms.lower.views import materialise

if TYPE_CHECKING:
    from tilelang_npu.transforms.lower.lower_to_hivm import KernelLowering


def lower_vector_function(lowering: KernelLowering, op: tile.VectorFunctionOp) -> None:
    """Emits the call of a vector function, and adds the function to ``lowering.functions``.

    Raises:
        TileError: T190, the chip has no vector registers.
    """
    if not lowering.chip.features.vector_registers:
        having = ", ".join(one.name for one in chips() if one.features.vector_registers)
        raise refuse(op, f"a vector function computes on vector registers, which {lowering.chip.name} does not have", "T190",
                     help=f"compile for a chip that has them: {having}")
    operands = [_operand(lowering, op, value) for value in op.operands]
    name = f"{lowering.kernel.sym_name.data}_vf_{len(lowering.functions)}"
    body = op.body.clone()
    arguments = list(body.block.args)
    effects: list[dict[str, Attribute]] = []
    for argument, value in zip(arguments, operands, strict=True):
        effects.append(_effect(argument))
        if argument.type != value.type:
            Rewriter.replace_value_with_new_type(argument, value.type)
    for inner in list(body.walk()):
        forget_core(inner)
        _follow(inner)
    body.block.add_op(func.ReturnOp())
    made = func.FuncOp(name, ([value.type for value in operands], []), body, "private",
                       arg_attrs=ArrayAttr([DictionaryAttr(each) for each in effects]))
    made.location = op.location
    made.attributes[VECTOR_FUNCTION] = UnitAttr()
    made.attributes["no_inline"] = UnitAttr()
    put_core_of_function(made, "AIV")
    if op.latency is not None:
        made.attributes["latency"] = op.latency
    lowering.functions.append(made)
    call = func.CallOp(name, operands, [])
    call.attributes[VECTOR_FUNCTION] = UnitAttr()
    lowering.emit.insert(call)


def _operand(lowering: KernelLowering, op: Operation, value: SSAValue) -> SSAValue:
    if isinstance(value.type, MemRefType):
        return materialise(lowering.emit, lowering.view(value), op)
    return lowering.values[value]


def _effect(argument: SSAValue) -> dict[str, Attribute]:
    """The attribute of a parameter that states whether the function reads or writes the buffer."""
    if not isinstance(argument.type, MemRefType):
        return {}
    reads, writes = bool(loads_of(argument)), bool(stores_of(argument))
    word = "read_write" if reads and writes else "write" if writes else "read"
    return {"hivm.memory_effect": hivm.MemoryEffectAttr(word)}


def _follow(op: Operation) -> None:
    """Gives the result of a view the memory of its source."""
    if not isinstance(op, memref.ReinterpretCastOp):
        return
    source, result = op.source.type, op.result.type
    assert isinstance(source, MemRefType)
    assert isinstance(result, MemRefType)
    Rewriter.replace_value_with_new_type(
        op.result, MemRefType(result.element_type, result.shape, result.layout, source.memory_space))


__all__ = ["lower_vector_function"]
