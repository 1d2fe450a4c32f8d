"""Which buffer a tile operand belongs to, and what each tile operation does to its operands.

The effects of the tile dialect's operations stand here once; scope inference, accumulator clearing, vectorisation and
lowering ask for them and guess nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from xdsl.dialects import memref, scf
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Attribute, Block, Operation, SSAValue

from tilelang_npu import ops
from tilelang_npu.dialects import hivm, tile

SCRATCH = "tile.scratch"
"""Attribute of an allocation that a pass made for one operation; gone after planning."""


@dataclass(frozen=True)
class Use:
    """One operand of one tile operation.

    Attributes:
        op: the operation.
        index: position of the operand in ``op.operands``.
        reads: whether the operation reads the operand's elements.
        writes: whether it writes them.
        role: ``left``/``right``/``accumulator`` of a gemm, ``vector``, ``scalar``, or the side of a copy.
    """

    op: Operation
    index: int
    reads: bool
    writes: bool
    role: Literal["left", "right", "accumulator", "vector", "scalar", "fill", "copy-source", "copy-target", "dump"]

    @property
    def value(self) -> SSAValue:
        return self.op.operands[self.index]


def space_of(value: SSAValue) -> str:
    """Memory of a memref value by HIVM address space, or its scope while that is open (``shared``, ``fragment``, ``local``)."""
    kind = value.type
    assert isinstance(kind, MemRefType)
    if isinstance(kind.memory_space, tile.ScopeAttr):
        return str(kind.memory_space.data.value)
    return hivm.space_of(kind) or "gm"


def root_of(value: SSAValue) -> SSAValue:
    """The allocation or argument that a view chain starts from."""
    while isinstance(value.owner, (tile.RegionOp, tile.ViewOp, tile.TensorOp)):
        value = value.owner.source
    return value


def users_of(value: SSAValue) -> Iterator[Operation]:
    """The operations that use a buffer: its views, and what uses it through them."""
    for use in value.uses:
        yield use.operation
        if isinstance(use.operation, (tile.RegionOp, tile.ViewOp)):
            yield from users_of(use.operation.results[0])


def covers_root(value: SSAValue) -> bool:
    """Whether a view surely has every element of its root."""
    while isinstance(value.owner, (tile.RegionOp, tile.ViewOp)):  # no view of an argument has all of what is behind it
        owner = value.owner
        if isinstance(owner, tile.RegionOp) and tuple(owner.mixed_sizes()) != tile.shape_of(owner.source):
            return False
        value = owner.source
    return True


def uses_of(op: Operation) -> Iterator[Use]:
    """The buffer operands of one tile operation, with its effects on them; nothing for other operations."""
    if isinstance(op, tile.CopyOp):
        yield Use(op, 0, reads=True, writes=False, role="copy-source")
        yield Use(op, 1, reads=op.atomic is not None, writes=True, role="copy-target")
    elif isinstance(op, tile.GemmOp):
        yield Use(op, 0, reads=True, writes=False, role="left")
        yield Use(op, 1, reads=True, writes=False, role="right")
        yield Use(op, 2, reads=not _surely_true(op.init), writes=True, role="accumulator")
    elif isinstance(op, tile.ElementwiseOp):
        for index, value in enumerate(op.inputs):
            if isinstance(value.type, MemRefType):
                yield Use(op, index, reads=True, writes=False, role="vector")
        entry = op.entry()
        reads = isinstance(entry, ops.Composite) and entry.accumulates
        yield Use(op, len(op.inputs), reads=reads, writes=True, role="vector")
    elif isinstance(op, tile.CallOp):
        sources = {root_of(value) for value in op.inputs if isinstance(value.type, MemRefType)}
        for index, value in enumerate(op.inputs):
            if isinstance(value.type, MemRefType):
                yield Use(op, index, reads=True, writes=False, role="vector")
        for index, value in enumerate(op.outputs):
            kept = op.entry().partial or root_of(value) in sources
            yield Use(op, len(op.inputs) + index, reads=kept, writes=True, role="vector")
    elif isinstance(op, tile.DumpOp):
        yield Use(op, 0, reads=True, writes=False, role="dump")
    elif isinstance(op, tile.PrintOp):
        if isinstance(op.value.type, MemRefType):
            yield Use(op, 0, reads=True, writes=False, role="scalar")
    elif isinstance(op, tile.ReduceOp):
        yield Use(op, 0, reads=True, writes=False, role="vector")
        yield Use(op, 1, reads=op.accumulate is not None, writes=True, role="vector")
    elif isinstance(op, tile.FillOp):
        yield Use(op, 1, reads=False, writes=True, role="fill")
    elif isinstance(op, tile.BroadcastOp):
        yield Use(op, 0, reads=True, writes=False, role="vector")
        yield Use(op, 1, reads=False, writes=True, role="vector")
    elif isinstance(op, memref.LoadOp):
        yield Use(op, 0, reads=True, writes=False, role="scalar")
    elif isinstance(op, memref.StoreOp):
        yield Use(op, 1, reads=False, writes=True, role="scalar")


def _surely_true(value: SSAValue) -> bool:
    from tilelang_npu.transforms.ir.ranges import Ranges

    return Ranges().constant(value) in (1, -1)


def with_space(kind: MemRefType[Attribute], space: str) -> MemRefType[Attribute]:
    """The same memref type in another memory."""
    return MemRefType(kind.element_type, kind.shape, kind.layout, hivm.address_space(space))


def walk(block: Block) -> Iterator[Operation]:
    """All operations below a block in program order."""
    for op in block.ops:
        yield op
        for region in op.regions:
            for inner in region.blocks:
                yield from walk(inner)


def body_of(loop: scf.ForOp | scf.WhileOp) -> Block:
    """The block that a loop repeats; of a ``while`` the one behind its condition."""
    return loop.body.block if isinstance(loop, scf.ForOp) else loop.after_region.block
