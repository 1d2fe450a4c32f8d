"""What an operation does to memory, and on which pipe: asked of the operations, never guessed.

The planner, the synchronisation pass and the core splitter read this one list.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import IntegerAttr, MemRefType
from xdsl.ir import Operation, SSAValue

from tilelang_npu.dialects import hivm
from tilelang_npu.dialects.hivm.structured import StructuredOp


@dataclass(frozen=True)
class Access:
    """One operand that an operation reads or writes.

    Attributes:
        value: the memref.
        reads: whether elements of it are read.
        writes: whether elements of it are written.
        pipe: the pipe that does it: ``S``, ``V``, ``M``, ``MTE1``, ``MTE2``, ``MTE3`` or ``FIX``.
    """

    value: SSAValue
    reads: bool
    writes: bool
    pipe: str


def accesses(op: Operation) -> Iterator[Access]:
    """The memory accesses of one operation, in the order of its operands; nothing for views and scalars."""
    if isinstance(op, memref.LoadOp):
        if _is_memory(op.memref):
            yield Access(op.memref, reads=True, writes=False, pipe="S")
    elif isinstance(op, memref.StoreOp):
        if _is_memory(op.memref):
            yield Access(op.memref, reads=False, writes=True, pipe="S")
    elif isinstance(op, hivm.DebugOp):
        if _is_memory(op.arg):
            yield Access(op.arg, reads=True, writes=False, pipe="S")
    elif isinstance(op, StructuredOp):
        yield from _structured(op)


def _structured(op: StructuredOp) -> Iterator[Access]:
    pipes = op.pipes()
    if not pipes:
        return
    accumulates = _accumulates(op)
    for value in op.ins():
        if isinstance(value.type, MemRefType):
            yield Access(value, reads=True, writes=False, pipe=pipes[0])
    for value in op.outs():
        if isinstance(value.type, MemRefType):
            yield Access(value, reads=accumulates, writes=True, pipe=pipes[-1])
    scratch = getattr(op, "temp_buffer", None)
    if scratch is not None:
        yield Access(scratch, reads=False, writes=True, pipe=pipes[-1])


def _accumulates(op: StructuredOp) -> bool:
    start = op.init_condition if isinstance(op, hivm.MmadL1Op) else None
    if isinstance(op, hivm.CustomOp) and op.symbol == "mma":
        start = op.ins()[2]
    if start is not None:
        init = start.owner
        constant = init.value if isinstance(init, arith.ConstantOp) else None
        return not (isinstance(constant, IntegerAttr) and constant.value.data != 0)
    return isinstance(op, hivm.StoreOp) and op.atomic_kind is not None


def _is_memory(value: SSAValue) -> bool:
    """Whether a memref is in a device memory; scalar storage (``memref.alloca``) is the core's own."""
    kind = value.type
    return isinstance(kind, MemRefType) and hivm.space_of(kind) is not None
