"""Tiles in UB at places where no vector instruction begins: ``x[i, j + 1]``, ``y[i, 3]``, rows of a buffer without gaps.

What is read there comes into a tile that begins at a block, and what is written goes through one. Row by row, where rows begin
at blocks and are long: a gather takes the elements from the blocks that hold them, and a selection puts them between those
that stay. Otherwise element by element, which the scalar unit can do anywhere. Which one is by the chip's cycles.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil

from xdsl.dialects import arith, memref, scf
from xdsl.dialects.builtin import IndexType, IntegerAttr, IntegerType, MemRefType
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from tilelang_npu import ops
from tilelang_npu.dialects import hivm, tile
from tilelang_npu.dialects.declaration import dtype_of
from tilelang_npu.target import Chip
from tilelang_npu.transforms.ir.buffers import root_of
from tilelang_npu.transforms.ir.whole_blocks import is_paddable, places_of
from tilelang_npu.transforms.tile.parallel.indices import MADE, Index

REPEAT = 256
"""Bytes that a vector instruction takes per repeat (docs/hardware.md#vector-instructions)."""
_I32 = IntegerType(32)


def around(chip: Chip) -> float:
    """Cycles that the scalar unit spends per element on its loop and on addresses: eight instructions (CALC: what is left of
    the 34 cycles of docs/hardware.md#flags without two loads, an addition and a store)."""
    return 8 * chip.scalar.alu


class Unaligned:
    """The detours of one loop.

    Args:
        loop: the loop; what is made stands in front of it.
        extents: its box.
        chip: whose cycles decide.

    Attributes:
        cycles: what the detours take.
        told: what was done with which buffer.
    """

    def __init__(self, loop: tile.ParallelOp, extents: Sequence[int], chip: Chip) -> None:
        self.loop, self.extents, self.chip = loop, extents, chip
        self.cycles = 0.0
        self.told: list[str] = []

    def bring(self, source: SSAValue, found: Sequence[Index], landing: SSAValue) -> None:
        """Read the elements of an access into a tile of the box's rank, 1 along the axes that the access does not follow."""
        if self._is_by_rows(source, found, "gather"):
            self._gathered(source, found, landing)
        else:
            self._by_element(found, lambda place, at, here: self._moved(place, source, here, landing, at), "read", source)

    def put(self, held: SSAValue, target: SSAValue, found: Sequence[Index]) -> None:
        """Write a tile of the box's shape to the elements of an access."""
        if self._is_by_rows(target, found, "select"):
            self._merged(held, target, found)
        else:
            self._by_element(found, lambda place, at, here: self._moved(place, held, at, target, here), "written", target)

    # -- row by row ----------------------------------------------------------------------------------------------------

    def _is_by_rows(self, buffer: SSAValue, found: Sequence[Index], name: str) -> bool:
        """Whether rows can be gathered from, or merged into, the buffer, and that takes fewer cycles."""
        last = found[-1].axis
        if last is None or not places_of(buffer, padded=is_paddable(root_of(buffer))).rows:
            return False
        kind = dtype_of(_element(buffer))
        gather, entry = ops.operation("gather"), ops.operation(name)
        assert isinstance(gather, ops.Structured) and isinstance(entry, (ops.Structured, ops.Elementwise))
        if kind not in gather.dtypes or kind not in entry.dtypes:
            return False
        elements = self.extents[last]
        return self._row_cycles(elements, kind.nbytes, name) < elements * self._element_cycles()

    def _row_cycles(self, elements: int, nbytes: int, name: str) -> float:
        rates, repeats = self.chip.vector, ceil(elements * nbytes / REPEAT)
        total = 0.0
        for key in ("gather",) if name == "gather" else ("gather", "sel"):
            rate = rates[key]
            total += repeats * (rate.slope32 if nbytes >= 4 else rate.slope16)
            total += rate.fixed if name == "select" else 0  # each waits for the one before
        return total + 4 * self.chip.scalar.issue

    def _element_cycles(self) -> float:
        """One element by the scalar unit, and the loop around it."""
        return self.chip.scalar.load + self.chip.scalar.store + around(self.chip)

    def _window(self, buffer: SSAValue, index: Index) -> tuple[int, int]:
        """First and end of the part of a row that holds an access and begins at a block; all of it where it may be anywhere."""
        whole = tile.shape_of(buffer)[-1]
        if not isinstance(index.offset, int):
            return 0, whole
        assert index.axis is not None
        unit = places_of(buffer, padded=True).unit
        return index.offset // unit * unit, min(whole, ceil((index.offset + self.extents[index.axis]) / unit) * unit)

    def _gathered(self, source: SSAValue, found: Sequence[Index], landing: SSAValue) -> None:
        last = found[-1]
        assert last.axis is not None
        first, end = self._window(source, last)
        front = InsertPoint.before(self.loop)
        places = self._row(front, _I32, self.extents[last.axis])
        self._count(front, self._sum(front, last.offset, -first), places)
        point, rows = self._nest([index.axis for index in found[:-1] if index.axis is not None])
        at = self._leading(point, found, rows)
        window = self._insert(point, tile.RegionOp(source, [*at, first], [1] * len(at) + [end - first], [len(at)])).results[0]
        here = self._row_of(point, landing, rows, last.axis)
        self._insert(point, tile.CallOp("gather", [window, places], [here]))
        count = self._points([index.axis for index in found[:-1] if index.axis is not None])
        self._tell("gathered", source, count * self._row_cycles(self.extents[last.axis], _width(source), "gather")
                   + self.chip.vector["gather"].fixed + self.chip.vector["dup"].fixed)

    def _merged(self, held: SSAValue, target: SSAValue, found: Sequence[Index]) -> None:
        last = found[-1]
        assert last.axis is not None
        (first, end), count = self._window(target, last), self.extents[last.axis]
        front = InsertPoint.before(self.loop)
        places, bounded = (self._row(front, _I32, end - first) for _ in range(2))
        if isinstance(last.offset, int):
            begin: SSAValue | int = first - last.offset
        else:
            begin = self._insert(front, arith.SubiOp(self._index(front, first), last.offset)).results[0]
        self._count(front, begin, places)
        for name, bound in (("max", 0), ("min", count - 1)):
            limit = self._insert(front, arith.ConstantOp(IntegerAttr(bound, 32))).results[0]
            self._insert(front, tile.ElementwiseOp(name, [places if name == "max" else bounded, limit], bounded))
        ours = self._row(front, IntegerType(1), end - first)
        self._insert(front, tile.ElementwiseOp("compare", [places, bounded], ours, {"compare_mode": "eq"}))
        moved = self._row(front, _element(held), end - first)
        axes = [index.axis for index in found[:-1] if index.axis is not None]
        point, rows = self._nest(axes)
        at = self._leading(point, found, rows)
        window = self._insert(point, tile.RegionOp(target, [*at, first], [1] * len(at) + [end - first], [len(at)])).results[0]
        self._insert(point, tile.CallOp("gather", [self._row_of(point, held, rows, last.axis), bounded], [moved]))
        self._insert(point, tile.ElementwiseOp("select", [ours, moved, window], window))
        rates = self.chip.vector
        self._tell("merged into", target, self._points(axes) * self._row_cycles(count, _width(target), "select")
                   + rates["dup"].fixed + 2 * rates["max"].fixed + rates["cmp"].fixed)

    def _row(self, point: InsertPoint, element: Attribute, count: int) -> SSAValue:
        kind = MemRefType(element, [count], memory_space=hivm.address_space("ub"))
        return self._insert(point, tile.AllocOp(MADE, kind)).results[0]

    def _row_of(self, point: InsertPoint, held: SSAValue, rows: dict[int, SSAValue], last: int) -> SSAValue:
        """The row of a tile of the box's rank at a place of the nest."""
        shape = tile.shape_of(held)
        if all(size == 1 for axis, size in enumerate(shape) if axis != last) and len(shape) == 1:
            return held
        offsets = [rows.get(axis, 0) if shape[axis] != 1 else 0 for axis in range(len(shape))]
        sizes = [shape[axis] if axis == last else 1 for axis in range(len(shape))]
        return self._insert(point, tile.RegionOp(held, offsets, sizes, [last])).results[0]

    def _count(self, point: InsertPoint, first: SSAValue | int, places: SSAValue) -> None:
        self._insert(point, tile.CallOp("arange", [self._index(point, first), self._index(point, 1)], [places]))

    # -- element by element --------------------------------------------------------------------------------------------

    def _by_element(self, found: Sequence[Index], move: Callable[[InsertPoint, list[SSAValue], list[SSAValue]], None],
                    verb: str, buffer: SSAValue) -> None:
        axes = [index.axis for index in found if index.axis is not None]
        point, rows = self._nest(axes)
        here = [self._index(point, one) for one in self._leading(point, (*found, Index(None, 0)), rows)]
        at = [rows[axis] if axis in rows else self._index(point, 0) for axis in range(len(self.extents))]
        move(point, at, here)
        self._tell(f"{verb} element by element", buffer, self._points(axes) * self._element_cycles())

    def _moved(self, point: InsertPoint, source: SSAValue, read: list[SSAValue], target: SSAValue,
               write: list[SSAValue]) -> None:
        value = self._insert(point, memref.LoadOp.get(source, read)).results[0]
        self._insert(point, memref.StoreOp.get(value, target, write))

    # -- loops ---------------------------------------------------------------------------------------------------------

    def _nest(self, axes: Sequence[int]) -> tuple[InsertPoint, dict[int, SSAValue]]:
        """Loops over axes of the box, and where their body is."""
        point, found = InsertPoint.before(self.loop), dict[int, SSAValue]()
        for axis in axes:
            if self.extents[axis] == 1:
                found[axis] = self._index(point, 0)
                continue
            body = Block(arg_types=[IndexType()])
            body.args[0].name_hint = self.loop.body.block.args[axis].name_hint
            low, high, step = (self._index(point, bound) for bound in (0, self.extents[axis], 1))
            end = scf.YieldOp()
            body.add_op(end)
            self._insert(point, scf.ForOp(low, high, step, [], Region(body)))
            point, found[axis] = InsertPoint.before(end), body.args[0]
        return point, found

    def _leading(self, point: InsertPoint, found: Sequence[Index], rows: dict[int, SSAValue]) -> list[SSAValue | int]:
        """The positions along all axes of the buffer but the last."""
        return [index.offset if index.axis is None else self._sum(point, rows[index.axis], index.offset)
                for index in found[:-1]]

    def _sum(self, point: InsertPoint, a: SSAValue | int, b: SSAValue | int) -> SSAValue | int:
        if isinstance(a, int) and isinstance(b, int):
            return a + b
        if b == 0 or a == 0:
            return a if b == 0 else b
        return self._insert(point, arith.AddiOp(self._index(point, a), self._index(point, b))).results[0]

    def _index(self, point: InsertPoint, value: SSAValue | int) -> SSAValue:
        if isinstance(value, SSAValue):
            return value
        return self._insert(point, arith.ConstantOp(IntegerAttr(value, IndexType()))).results[0]

    def _points(self, axes: Sequence[int]) -> int:
        total = 1
        for axis in axes:
            total *= self.extents[axis]
        return total

    def _insert(self, point: InsertPoint, op: Operation) -> Operation:
        op.location = self.loop.location
        Rewriter().insert_op(op, point)
        return op

    def _tell(self, how: str, buffer: SSAValue, cycles: float) -> None:
        self.cycles += cycles
        owner = root_of(buffer).owner
        name = owner.label.data if isinstance(owner, tile.AllocOp) else "a buffer"
        self.told.append(f"{name} ({how})")


def _element(value: SSAValue) -> Attribute:
    kind = value.type
    assert isinstance(kind, MemRefType)
    element: Attribute = kind.element_type
    return element


def _width(value: SSAValue) -> int:
    return dtype_of(_element(value)).nbytes


__all__ = ["Unaligned", "around"]
