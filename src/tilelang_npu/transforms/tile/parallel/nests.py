"""What stands in front of a ``T.Parallel`` on behalf of one of its operands: tiles, loops over points, what those take."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, prod

from xdsl.dialects import arith, memref, scf
from xdsl.dialects.builtin import IndexType, IntegerAttr, IntegerType, MemRefType
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from tilelang_npu.dialects import hivm, tile
from tilelang_npu.dialects.ir.mlir_dtypes import dtype_of
from tilelang_npu.target import BLOCK, Chip
from tilelang_npu.transforms.ir.buffers import root_of
from tilelang_npu.transforms.tile.parallel.indices import MADE, Multiples

REPEAT = 256
"""Bytes that a vector instruction takes per repeat (docs/hardware.md#vector-instructions)."""
I32 = IntegerType(32)


def around(chip: Chip) -> float:
    """Cycles that the scalar unit spends per element on its loop and on addresses: eight instructions (CALC: what is left of
    the 34 cycles of docs/hardware.md#flags without two loads, an addition and a store)."""
    return 8 * chip.scalar.alu


class Nests:
    """The detours of one loop.

    Args:
        loop: the loop; what is made stands in front of it.
        extents: its box.
        chip: whose cycles decide.

    Attributes:
        cycles: what the detours take.
        told: what was done with which buffer that begins at no block.
    """

    def __init__(self, loop: tile.ParallelOp, extents: Sequence[int], chip: Chip) -> None:
        self.loop, self.extents, self.chip = loop, extents, chip
        self.cycles = 0.0
        self.told: list[str] = []

    @property
    def front(self) -> InsertPoint:
        """In front of the loop."""
        return InsertPoint.before(self.loop)

    def insert(self, point: InsertPoint, op: Operation) -> Operation:
        """Put an operation somewhere, at the line of the loop."""
        op.location = self.loop.location
        Rewriter().insert_op(op, point)
        return op

    def made(self, point: InsertPoint, element: Attribute, shape: Sequence[int]) -> SSAValue:
        """A tile of its own in UB."""
        kind = MemRefType(element, shape, memory_space=hivm.address_space("ub"))
        return self.insert(point, tile.AllocOp(MADE, kind)).results[0]

    def tell(self, how: str, buffer: SSAValue, cycles: float) -> None:
        """Note a detour."""
        self.cycles += cycles
        self.told.append(f"{called(buffer)} ({how})")

    # -- loops ---------------------------------------------------------------------------------------------------------

    def nest(self, axes: Sequence[int], extents: Sequence[int] | None = None) -> tuple[InsertPoint, dict[int, SSAValue]]:
        """Loops over axes of the box, or of another one, and where their body is."""
        point, found = self.front, dict[int, SSAValue]()
        for axis in axes:
            extent = (extents or self.extents)[axis]
            if extent == 1:
                found[axis] = self.index(point, 0)
                continue
            body = Block(arg_types=[IndexType()])
            if extents is None:
                body.args[0].name_hint = self.loop.body.block.args[axis].name_hint
            low, high, step = (self.index(point, bound) for bound in (0, extent, 1))
            end = scf.YieldOp()
            body.add_op(end)
            self.insert(point, scf.ForOp(low, high, step, [], Region(body)))
            point, found[axis] = InsertPoint.before(end), body.args[0]
        return point, found

    def position(self, point: InsertPoint, place: Multiples, rows: dict[int, SSAValue]) -> SSAValue | int:
        """A place at one point of a nest."""
        total: SSAValue | int = 0
        for axis, factor in place.terms:
            total = self.sum(point, total, self.times(point, rows[axis], factor))
        return self.sum(point, total, place.offset)

    def sum(self, point: InsertPoint, a: SSAValue | int, b: SSAValue | int) -> SSAValue | int:
        """The sum of two indices."""
        if isinstance(a, int) and isinstance(b, int):
            return a + b
        if b == 0 or a == 0:
            return a if b == 0 else b
        return self.insert(point, arith.AddiOp(self.index(point, a), self.index(point, b))).results[0]

    def times(self, point: InsertPoint, a: SSAValue | int, b: int) -> SSAValue | int:
        """An index times a number."""
        if isinstance(a, int):
            return a * b
        return a if b == 1 else self.insert(point, arith.MuliOp(a, self.index(point, b))).results[0]

    def index(self, point: InsertPoint, value: SSAValue | int) -> SSAValue:
        """A number as a value."""
        if isinstance(value, SSAValue):
            return value
        return self.insert(point, arith.ConstantOp(IntegerAttr(value, IndexType()))).results[0]

    def row_of(self, point: InsertPoint, held: SSAValue, rows: dict[int, SSAValue], last: int) -> SSAValue:
        """The row of a tile of the box's rank at a place of the nest."""
        shape = tile.shape_of(held)
        if len(shape) == 1:
            return held
        offsets = [rows.get(axis, 0) if shape[axis] != 1 else 0 for axis in range(len(shape))]
        sizes = [shape[axis] if axis == last else 1 for axis in range(len(shape))]
        return self.insert(point, tile.RegionOp(held, offsets, sizes, [last])).results[0]

    def count(self, point: InsertPoint, first: SSAValue | int, places: SSAValue, *steps: int) -> None:
        """Fill a tile of int32 with ``first`` and what is ``steps`` further along each axis, 1 unless told."""
        values = [self.index(point, value) for value in (first, *(steps or (1,)))]
        self.insert(point, tile.CallOp("arange", values, [places]))

    # -- element by element --------------------------------------------------------------------------------------------

    def move_elements(self, held: SSAValue, buffer: SSAValue, places: Sequence[Multiples], *, write: bool) -> float:
        """Each element of an access by the scalar unit, to or from a tile of the box's rank (1 along the axes that it lacks);
        the cycles."""
        axes = sorted({axis for place in places for axis, _ in place.terms})
        point, rows = self.nest(axes)
        there = [self.index(point, self.position(point, place, rows)) for place in places]
        here = [rows[axis] if axis in rows else self.index(point, 0) for axis in range(len(self.extents))]
        (source, read), (target, put) = ((held, here), (buffer, there)) if write else ((buffer, there), (held, here))
        value = self.insert(point, memref.LoadOp.get(source, read)).results[0]
        self.insert(point, memref.StoreOp.get(value, target, put))
        return self.points(axes) * self.element_cycles()

    def points(self, axes: Sequence[int]) -> int:
        """Points of the box along axes."""
        return prod(self.extents[axis] for axis in axes)

    # -- cycles --------------------------------------------------------------------------------------------------------

    def element_cycles(self) -> float:
        """One element by the scalar unit, and the loop around it."""
        return self.chip.scalar.load + self.chip.scalar.store + around(self.chip)

    def vector_cycles(self, key: str, nbytes: int, elements: int, rows: int = 1) -> float:
        """Rows of elements by an instruction, without what it takes an empty pipe."""
        rate = self.chip.vector[key]
        if elements * nbytes % BLOCK == 0:
            rows, elements = 1, rows * elements  # they follow one another
        return rows * ceil(elements * nbytes / REPEAT) * (rate.slope32 if nbytes >= 4 else rate.slope16)


def element_of(value: SSAValue) -> Attribute:
    """The element type of a tile."""
    kind = value.type
    assert isinstance(kind, MemRefType)
    element: Attribute = kind.element_type
    return element


def width_of(value: SSAValue) -> int:
    """Bytes of an element of a tile."""
    return dtype_of(element_of(value)).nbytes


def called(buffer: SSAValue) -> str:
    """What messages call a buffer."""
    owner = root_of(buffer).owner
    return owner.label.data if isinstance(owner, tile.AllocOp) else root_of(buffer).name_hint or "a tensor"


__all__ = ["I32", "REPEAT", "Nests", "around", "called", "element_of", "width_of"]
