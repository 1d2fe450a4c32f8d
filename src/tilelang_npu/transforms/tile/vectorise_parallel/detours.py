"""Emits detours: operations that bring the elements of an access in a ``T.Parallel`` into, or out of, an aligned tile.

A detour is needed where a vector instruction cannot access the elements directly. All operations are inserted before the loop:
allocations of tiles, scalar loops over the points, and moves of single elements. The cycles that the detours take on the chip
are added up, so that the caller can compare them with the cycles of a scalar loop over the points.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, prod

from xdsl.dialects import arith, memref, scf
from xdsl.dialects.builtin import IndexType, IntegerAttr, IntegerType, MemRefType, UnrealizedConversionCastOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from tilelang_npu import ops
from tilelang_npu.analysis.buffer_sizes import buffer_name
from tilelang_npu.analysis.buffers import PARALLEL_LABEL, element_bytes, element_type_of
from tilelang_npu.analysis.index_sums import IndexSum
from tilelang_npu.dialects import hivm, tile
from tilelang_npu.target import BLOCK, Chip
from tilelang_npu.target.chip_data import REPEAT_BYTES

I32 = IntegerType(32)


def scalar_loop_cycles(chip: Chip) -> float:
    """Returns the cycles per element that the scalar unit spends on the loop and on addresses, which are eight instructions.

    CALC: the 34 cycles of docs/hardware.md#flags, less two loads, an addition and a store.
    """
    return 8 * chip.scalar.alu


class DetourEmitter:
    """Emits the detours of one loop.

    Args:
        loop: the loop, before which all operations are inserted.
        extents: the sizes of the loop's iteration space.
        chip: the chip for which cycles are computed.

    Attributes:
        cycles: the sum of the cycles of all detours so far.
        unaligned: for each detour of an access that does not begin at a block of UB, a text with the buffer and the kind of
            the detour.
        reduces: whether values of several points are reduced to one.
    """

    def __init__(self, loop: tile.ParallelOp, extents: Sequence[int], chip: Chip) -> None:
        self.loop, self.extents, self.chip = loop, extents, chip
        self.cycles = 0.0
        self.unaligned: list[str] = []
        self.reduces = False

    @property
    def before_loop(self) -> InsertPoint:
        """The insertion point directly before the loop."""
        return InsertPoint.before(self.loop)

    def insert(self, point: InsertPoint, op: Operation) -> Operation:
        """Inserts an operation at a position, with the source location of the loop; returns the operation."""
        op.location = self.loop.location
        Rewriter().insert_op(op, point)
        return op

    def allocate(self, point: InsertPoint, element: Attribute, shape: Sequence[int]) -> SSAValue:
        """Allocates a tile in UB; returns the tile."""
        kind = MemRefType(element, shape, memory_space=hivm.address_space("ub"))
        return self.insert(point, tile.AllocOp(PARALLEL_LABEL, kind)).results[0]

    def record_unaligned(self, how: str, buffer: SSAValue, cycles: float) -> None:
        """Records a detour of an unaligned access in ``unaligned`` and ``cycles``.

        Args:
            how: the kind of the detour, as text.
            buffer: the accessed buffer.
            cycles: the cycles of the detour.
        """
        self.cycles += cycles
        self.unaligned.append(f"{buffer_name(buffer)} ({how})")

    def record_reduction(self, name: str, values: SSAValue) -> None:
        """Records a reduction along one axis in ``reduces`` and ``cycles``.

        Args:
            name: the name of the reduction in the op table.
            values: the tile that is reduced.
        """
        entry = ops.operation(name)
        assert isinstance(entry, ops.Reduce)
        self.reduces = True
        *rows, row = tile.shape_of(values)
        self.cycles += self.chip.vector[entry.cost].fixed
        self.cycles += self.vector_cycles(entry.cost, element_bytes(values), row, prod(rows))

    # -- loops ---------------------------------------------------------------------------------------------------------

    def emit_loops(self, axes: Sequence[int], extents: Sequence[int] | None = None) -> tuple[InsertPoint, dict[int, SSAValue]]:
        """Emits nested scalar loops before the ``T.Parallel``, one for each of the given axes of its iteration space.

        Args:
            axes: the axes, the outermost loop first.
            extents: the sizes of all axes of the iteration space; by default that of the ``T.Parallel``.

        Returns:
            The insertion point in the innermost body, and for each axis the induction variable (or 0 for an axis of size 1).
        """
        point, found = self.before_loop, dict[int, SSAValue]()
        for axis in axes:
            extent = (extents or self.extents)[axis]
            if extent == 1:
                found[axis] = self.as_value(point, 0)
                continue
            body = Block(arg_types=[IndexType()])
            if extents is None:
                body.args[0].name_hint = self.loop.body.block.args[axis].name_hint
            low, high, step = (self.as_value(point, bound) for bound in (0, extent, 1))
            end = scf.YieldOp()
            body.add_op(end)
            self.insert(point, scf.ForOp(low, high, step, [], Region(body)))
            point, found[axis] = InsertPoint.before(end), body.args[0]
        return point, found

    def emit_index(self, point: InsertPoint, place: IndexSum, rows: dict[int, SSAValue]) -> SSAValue | int:
        """Emits the value of an index sum for the current values of induction variables.

        Args:
            point: the insertion point.
            place: the index sum.
            rows: the induction variable of each axis.
        """
        total: SSAValue | int = 0
        for axis, factor in place.terms:
            total = self.emit_sum(point, total, self.emit_product(point, rows[axis], factor))
        return self.emit_sum(point, total, place.offset)

    def emit_sum(self, point: InsertPoint, a: SSAValue | int, b: SSAValue | int) -> SSAValue | int:
        """Emits the sum of two indices; emits nothing where one of them is 0 or both are constants."""
        if isinstance(a, int) and isinstance(b, int):
            return a + b
        if b == 0 or a == 0:
            return a if b == 0 else b
        return self.insert(point, arith.AddiOp(self.as_value(point, a), self.as_value(point, b))).results[0]

    def emit_product(self, point: InsertPoint, a: SSAValue | int, b: int) -> SSAValue | int:
        """Emits the product of an index and a constant; emits nothing where the result is a constant or ``a``."""
        if isinstance(a, int):
            return a * b
        return a if b == 1 else self.insert(point, arith.MuliOp(a, self.as_value(point, b))).results[0]

    def as_value(self, point: InsertPoint, value: SSAValue | int) -> SSAValue:
        """Returns ``value`` as an SSA value; for an integer, a constant is emitted."""
        if isinstance(value, SSAValue):
            return value
        return self.insert(point, arith.ConstantOp(IntegerAttr(value, IndexType()))).results[0]

    def row_region(self, point: InsertPoint, held: SSAValue, rows: dict[int, SSAValue], last: int) -> SSAValue:
        """Emits the region of a tile that is one row along an axis.

        Args:
            point: the insertion point.
            held: the tile, which has the rank of the iteration space.
            rows: for each other axis, the index of the row along this axis.
            last: the axis along which the row extends.
        """
        shape = tile.shape_of(held)
        if len(shape) == 1:
            return held
        offsets = [rows.get(axis, 0) if shape[axis] != 1 else 0 for axis in range(len(shape))]
        sizes = [shape[axis] if axis == last else 1 for axis in range(len(shape))]
        return self.insert(point, tile.RegionOp(held, offsets, sizes, [last])).results[0]

    def fill_arange(self, point: InsertPoint, first: SSAValue | int, places: SSAValue, *steps: int) -> None:
        """Emits the filling of an int32 tile: its element ``[i, j]`` becomes ``first + steps[0] * i + steps[1] * j``.

        If no steps are given, the tile must have one axis, and the step is 1.
        """
        values = [self.as_value(point, value) for value in (first, *(steps or (1,)))]
        self.insert(point, tile.CallOp("arange", values, [places]))

    # -- element by element --------------------------------------------------------------------------------------------

    def move_elements(self, held: SSAValue, buffer: SSAValue, places: Sequence[IndexSum], *, write: bool) -> float:
        """Emits scalar loops that move the elements of an access, one by one, to a tile or from a tile.

        Args:
            held: the tile. It has the rank of the iteration space, and size 1 along axes that the access does not use.
            buffer: the accessed buffer.
            places: for each axis of the buffer, the index of the access as an ``IndexSum``: multiples of loop variables plus an
                offset.
            write: whether elements move from the tile to the buffer; otherwise from the buffer to the tile.

        Returns:
            The cycles that the loops take.
        """
        axes = sorted({axis for place in places for axis, _ in place.terms})
        point, rows = self.emit_loops(axes)
        there = [self.as_value(point, self.emit_index(point, place, rows)) for place in places]
        here = [rows[axis] if axis in rows else self.as_value(point, 0) for axis in range(len(self.extents))]
        (source, read), (target, put) = ((held, here), (buffer, there)) if write else ((buffer, there), (held, here))
        value = self.insert(point, memref.LoadOp.get(source, read)).results[0]
        self.insert(point, memref.StoreOp.get(value, target, put))
        return self.point_count(axes) * self.element_cycles()

    def combine_elements(self, held: SSAValue, buffer: SSAValue, places: Sequence[IndexSum], combine: Operation,
                         value: SSAValue) -> None:
        """Emits scalar loops that combine the elements of an access, one by one, with those of a tile.

        Args:
            held: the tile. It has the rank of the iteration space, and size 1 along axes that the access does not use.
            buffer: the accessed buffer.
            places: for each axis of the buffer, the index of the access as an ``IndexSum``.
            combine: the operation of the body that combines an element with a value.
            value: the operand of ``combine`` that the elements of the tile replace; the other one is the element.
        """
        axes = sorted({axis for place in places for axis, _ in place.terms})
        point, rows = self.emit_loops(axes)
        there = [self.as_value(point, self.emit_index(point, place, rows)) for place in places]
        here = [rows[axis] if axis in rows else self.as_value(point, 0) for axis in range(len(self.extents))]
        old = self._as_type(point, self.insert(point, memref.LoadOp.get(buffer, there)).results[0], value.type)
        more = self.insert(point, memref.LoadOp.get(held, here)).results[0]
        made = combine.clone(value_mapper={operand: more if operand is value else old for operand in combine.operands})
        result = self._as_type(point, self.insert(point, made).results[0], element_type_of(buffer))
        self.insert(point, memref.StoreOp.get(result, buffer, there))
        cycles = self.element_cycles() + self.chip.scalar.load + self.chip.scalar.alu
        self.record_unaligned("combined element by element", buffer, self.point_count(axes) * cycles)

    def _as_type(self, point: InsertPoint, value: SSAValue, kind: Attribute) -> SSAValue:
        """Returns an integer with the signedness of a type."""
        return value if value.type == kind else self.insert(point, UnrealizedConversionCastOp.get([value], [kind])).results[0]

    def point_count(self, axes: Sequence[int]) -> int:
        """Returns the product of the iteration space's sizes along some axes."""
        return prod(self.extents[axis] for axis in axes)

    # -- cycles --------------------------------------------------------------------------------------------------------

    def element_cycles(self) -> float:
        """Returns the cycles that the scalar unit takes to move one element in a loop."""
        return self.chip.scalar.load + self.chip.scalar.store + scalar_loop_cycles(self.chip)

    def vector_cycles(self, key: str, nbytes: int, elements: int, rows: int = 1) -> float:
        """Returns the cycles in which a vector instruction processes rows of elements, without the instruction's latency.

        Args:
            key: the name of the instruction in the chip's table of rates.
            nbytes: the bytes of an element.
            elements: the number of elements of a row.
            rows: the number of rows.
        """
        rate = self.chip.vector[key]
        if elements * nbytes % BLOCK == 0:
            rows, elements = 1, rows * elements  # contiguous rows are one row
        return rows * ceil(elements * nbytes / REPEAT_BYTES) * (rate.slope32 if nbytes >= 4 else rate.slope16)


__all__ = ["I32", "DetourEmitter", "element_bytes", "element_type_of", "scalar_loop_cycles"]
