"""The op of a vector function: a region of a Vector core that computes on vector registers.

A vector register is a value of a builtin vector type, and a mask is a vector of i1. The body consists of ops of ``vector``,
``arith``, ``math`` and ``scf``, as AscendNPU-IR's functions with the attribute ``hivm.vector_function`` do. It refers to no
value from outside: buffers and scalars are arguments of the body. So every pass treats a vector function as one op of pipe V
that reads and writes buffers in UB.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import vector
from xdsl.dialects.builtin import IntegerAttr, MemRefType, i64
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.irdl import AnyAttr, AttrSizedOperandSegments, opt_prop_def, region_def, traits_def, var_operand_def
from xdsl.traits import IsolatedFromAbove, NoTerminator

from tilelang_npu.dialects.ir.declaration import fail
from tilelang_npu.dialects.ir.effects import EffectsOp, op_with_effects
from tilelang_npu.dialects.mlir.vector import GatherOp, ScatterOp

__all__ = ["VectorFunctionOp", "loads_of", "stores_of"]

_LOADS = (vector.LoadOp, vector.TransferReadOp, vector.MaskedLoadOp, GatherOp)
_STORES = (vector.StoreOp, vector.TransferWriteOp, vector.MaskedStoreOp, ScatterOp)


def loads_of(value: SSAValue) -> list[Operation]:
    """Returns the ops of a vector function that load registers from a buffer argument, through views of the buffer too."""
    return [op for op in _accesses(value) if isinstance(op, _LOADS)]


def stores_of(value: SSAValue) -> list[Operation]:
    """Returns the ops of a vector function that store registers to a buffer argument, through views of the buffer too."""
    return [op for op in _accesses(value) if isinstance(op, _STORES)]


def _accesses(value: SSAValue) -> list[Operation]:
    found: list[Operation] = []
    pending = [value]
    while pending:
        for use in pending.pop().uses:
            found.append(use.operation)
            pending += [result for result in use.operation.results if isinstance(result.type, MemRefType)]
    return found


@op_with_effects(reads={"inputs": "vector"}, writes={"outputs": "vector"}, untouched=("scalars",))
class VectorFunctionOp(EffectsOp):
    """Executes a vector function: ``inputs`` are only read; ``outputs`` are written, and possibly read as well.

    The body has an argument for each operand: the inputs, the outputs, the scalars. Buffers are memrefs with one axis, whose
    memory the body's arguments leave open. ``latency`` is the number of cycles that the author measured for the function.
    """

    name = "tile.vector_function"
    inputs = var_operand_def(MemRefType)
    outputs = var_operand_def(MemRefType)
    scalars = var_operand_def(AnyAttr())
    latency = opt_prop_def(IntegerAttr)
    body = region_def("single_block")
    traits = traits_def(NoTerminator(), IsolatedFromAbove())
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    assembly_format = (
        "(`ins` `(` $inputs^ `:` type($inputs) `)`)? (`outs` `(` $outputs^ `:` type($outputs) `)`)?"
        " (`scalars` `(` $scalars^ `:` type($scalars) `)`)? (`latency` $latency^)? attr-dict-with-keyword $body"
    )

    def __init__(self, inputs: Sequence[SSAValue], outputs: Sequence[SSAValue], scalars: Sequence[SSAValue],
                 body: Region | None = None, latency: int = 0):
        given = [*inputs, *outputs, *scalars]
        super().__init__(operands=[list(inputs), list(outputs), list(scalars)],
                         properties={"latency": IntegerAttr(latency, i64) if latency else None},
                         regions=[body or Region(Block(arg_types=[argument_type(value.type) for value in given]))])

    def buffers(self) -> list[SSAValue]:
        """Returns the buffer operands, the inputs before the outputs."""
        return [*self.inputs, *self.outputs]

    def reads_destination(self, target: SSAValue) -> bool:
        """Whether the body loads from an output."""
        return any(loads_of(argument) for operand, argument in zip(self.operands, self.body.block.args, strict=True)
                   if operand is target)

    def writes_partially(self) -> bool:
        """Whether the function may leave elements of its outputs unwritten: it stores the lanes that its masks select."""
        return True

    def verify_(self) -> None:
        wanted = [argument_type(value.type) for value in self.operands]
        if [argument.type for argument in self.body.block.args] != wanted:
            fail(f"the body has arguments of the types {', '.join(str(one.type) for one in self.body.block.args)}, but the "
                 f"operands require {', '.join(map(str, wanted))}")
        inputs = len(self.inputs)
        if any(stores_of(argument) for argument in self.body.block.args[:inputs]):
            fail("the body stores to an input")


def argument_type(kind: Attribute) -> Attribute:
    """Returns the type of the body's argument for an operand: that of a scalar, or of a buffer without its memory."""
    return MemRefType(kind.element_type, kind.shape) if isinstance(kind, MemRefType) else kind
