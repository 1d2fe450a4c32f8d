"""A loop that does vector work row by row becomes the work of all rows: one instruction in place of as many as there are rows.

``for r in T.serial(n): T.tile.sub(x[r, :], x[r, :], m[r])`` takes row ``r`` of each tile, and an element of a buffer that the
scalar unit reads for it. Together the rows are a tile and the elements a column, which the instruction spreads along the row
itself: nothing goes through the scalar unit, and nobody waits for it.

Sound because an iteration touches no row of what the loop writes but its own: doing one statement for all rows before the next
gives what the rows one by one do. Only where the compiler synchronises: a loop in which its author does, or has a barrier, is
left as it is.

Runs once memories are known and rows are divided between the Vector cores; what it leaves reads no scalars, which would bind
iterations to each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, memref, scf
from xdsl.dialects.builtin import MemRefType, ModuleOp, StridedLayoutAttr
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from tilelang_npu import target as chips
from tilelang_npu.dialects import tile
from tilelang_npu.dialects.ir.affine_sums import affine
from tilelang_npu.dialects.ir.mlir_dtypes import dtype_of
from tilelang_npu.dialects.ir.remarks import record_done, record_refusal
from tilelang_npu.dialects.text import location_of
from tilelang_npu.dialects.text.names import author_name
from tilelang_npu.linear import Linear
from tilelang_npu.ops.spec import Composite
from tilelang_npu.target import BLOCK
from tilelang_npu.transforms.ir.buffers import root_of, space_of
from tilelang_npu.transforms.ir.optimisations import Refusal
from tilelang_npu.transforms.ir.ranges import Ranges
from tilelang_npu.transforms.ir.sizes import nbytes_of, spaced

_NUMBERS = (arith.ConstantOp, arith.AddiOp, arith.SubiOp, arith.MuliOp, arith.IndexCastOp)
"""What may stand in the loop beside the work: what rows and columns are counted with."""
_SPREAD = (2, 4)
"""Bytes of the elements that an instruction spreads along a row."""
_RANK = 2
"""Axes of the rows along which it does."""


@dataclass(frozen=True)
class _OneRow:
    """What an iteration takes of a buffer: one row, or an element of a column.

    Attributes:
        source: the buffer, or what shows it.
        offsets: where the rectangle begins, by axis of the source.
        sizes: its sizes.
        kept: the axes that the operand has.
        axis: along which the loop goes, one at a time; the operand has none in front of it.
    """

    source: SSAValue
    offsets: Sequence[SSAValue | int]
    sizes: Sequence[SSAValue | int]
    kept: Sequence[int]
    axis: int

    @property
    def all_kept(self) -> Sequence[int]:
        """The axes that all rows together have; they lie along the first."""
        return sorted({*self.kept, self.axis})


class _RowLoop:
    """A loop over rows.

    Args:
        loop: the loop.
        ranges: what is known of numbers.
    """

    def __init__(self, loop: scf.ForOp, ranges: Ranges) -> None:
        self.loop, self.index = loop, loop.body.block.args[0]
        self.work = [op for op in loop.body.block.ops if isinstance(op, tile.ElementwiseOp)]
        self.rows = ranges.trip_count(loop).constant
        self._turning: set[SSAValue] = {self.index}
        for op in loop.body.block.ops:
            if any(value in self._turning for value in op.operands):
                self._turning.update(op.results)

    def turns(self, value: SSAValue | int) -> bool:
        """Whether a value differs from iteration to iteration."""
        return not isinstance(value, int) and value in self._turning

    def row(self, value: SSAValue) -> _OneRow | None:
        """What an operand is of its buffer, if it is one row of it."""
        owner = value.owner
        if isinstance(owner, tile.RegionOp):
            return self._along(owner.source, owner.mixed_offsets(), owner.mixed_sizes(), list(owner.kept.get_values()))
        if isinstance(owner, memref.LoadOp):
            return self._along(owner.memref, list(owner.indices), [1] * len(owner.indices), [])
        return None

    def _along(self, source: SSAValue, offsets: Sequence[SSAValue | int], sizes: Sequence[SSAValue | int], kept: Sequence[int]
               ) -> _OneRow | None:
        axes = [axis for axis, offset in enumerate(offsets) if self.turns(offset)]
        if len(axes) != 1 or sizes[axes[0]] != 1 or any(map(self.turns, sizes)) or self.turns(source) or (
                kept and kept[0] < axes[0]):
            return None
        form = affine(offsets[axes[0]])
        rest, extent = form - Linear.of(self.index), tile.shape_of(source)[axes[0]]
        first = rest + affine(self.loop.lb)
        beyond = first.known and (first.constant < 0 or first.constant + (self.rows or 0) > extent)  # and told so row by row
        if form.factor(self.index) != 1 or any(map(self.turns, rest.terms)) or beyond:
            return None
        return _OneRow(source, offsets, sizes, kept, axes[0])

    def is_plain(self) -> bool:
        """Whether it is vector work on one row each, and no iteration sees a row of another one."""
        body = self.loop.body.block
        if self.loop.iter_args or tile.stages_of(self.loop) > 1 or not self.work or not all(
                isinstance(op, (*_NUMBERS, tile.RegionOp, memref.LoadOp, tile.ElementwiseOp, scf.YieldOp)) for op in body.ops):
            return False
        written: dict[SSAValue, _OneRow] = {}
        for op in self.work:
            row = self.row(op.target)
            if row is None or not all(self._fits(value, row) for value in op.inputs) or (
                    len(row.all_kept) > _RANK and self.columns(op)):
                return False
            written.setdefault(root_of(op.target), row)
        seen = [value for op in self.work for value in op.operands if isinstance(value.type, MemRefType)]
        seen += [op.memref for op in body.ops if isinstance(op, memref.LoadOp)]
        return all(self._own(value, written) for value in seen if root_of(value) in written)

    def _fits(self, value: SSAValue, row: _OneRow) -> bool:
        """Whether an operand is a row of as many axes as the one that is written, or an element or a number."""
        own = self.row(value)
        if not isinstance(value.type, MemRefType):
            return not self.turns(value) or own is not None
        return own is not None and len(own.all_kept) == len(row.all_kept)

    def _own(self, value: SSAValue, written: dict[SSAValue, _OneRow]) -> bool:
        """Whether what is seen of a buffer that the loop writes is the row that it writes."""
        row, other = self.row(value), written[root_of(value)]
        return (row is not None and row.source is other.source and row.axis == other.axis
                and affine(row.offsets[row.axis]) == affine(other.offsets[other.axis]))

    def columns(self, op: tile.ElementwiseOp) -> list[SSAValue]:
        """The elements that an operation takes one of for each row."""
        return [value for value in op.inputs if not isinstance(value.type, MemRefType) and self.turns(value)]


def _kept(rows: _RowLoop) -> Refusal | None:
    """Why a loop stays a loop; None where its rows are done at once, if there is room for scratch."""
    if rows.rows is None:
        return Refusal("how many rows there are is known only at run time", "give the loop the constant number of rows")
    for op in rows.work:
        for value in (one for one in op.operands if isinstance(one.type, MemRefType)):
            row, width = rows.row(value), _width(value)
            if row is not None and (apart := _stride(row) * width) % BLOCK:
                return Refusal(f"rows of {_label(value)} begin {apart} bytes apart, those that are done together multiples of "
                               f"{BLOCK}", f"give {_label(value)} rows of a multiple of {BLOCK // width} elements")
        for value in rows.columns(op):
            owner, entry = value.owner, op.entry()
            assert isinstance(owner, memref.LoadOp)
            label = _label(owner.memref)
            if space_of(root_of(owner.memref)) == "gm":
                return Refusal(f"{label} is in GM, where the scalar unit alone reads single elements",
                               f"T.copy the elements of {label} to a buffer, and read that")
            row = rows.row(value)
            if row is None or _stride(row) != 1:
                return Refusal(f"the elements of {label} do not lie one behind the other",
                               f"let {label} have one element for each row")
            if isinstance(entry, Composite) or not entry.broadcast or entry.shifts or _width(owner.memref) not in _SPREAD:
                return Refusal(f"{entry.name} spreads no {value.type} of {label} along a row",
                               f"T.tile.broadcast {label} to a tile in front of the loop, and use its rows")
    return None


def _scratch(rows: _RowLoop) -> int:
    """Bytes for a block of copies of each element that is spread (docs/hivm.md#scratch)."""
    return (rows.rows or 0) * BLOCK if any(map(rows.columns, rows.work)) else 0


def _width(value: SSAValue) -> int:
    kind = value.type
    assert isinstance(kind, MemRefType)
    return int(dtype_of(kind.element_type).nbytes)


def _stride(row: _OneRow) -> int:
    """How many elements rows are apart; -1 where that is known only at run time."""
    kind = row.source.type
    assert isinstance(kind, MemRefType)
    stride = (kind.get_strides() or [])[row.axis]
    return -1 if stride is None else stride


def _label(value: SSAValue) -> str:
    return author_name(root_of(value), "the tile")


class _AllRows:
    """Writes the work of all rows in front of a loop."""

    def __init__(self, rows: _RowLoop, count: int) -> None:
        self.rows, self.count = rows, count
        self._first: dict[SSAValue, SSAValue] = {rows.index: rows.loop.lb}

    def write(self) -> None:
        for op in self.rows.work:
            row = self.rows.row(op.target)
            assert row is not None
            inputs = [self._column(value, row) if value in self.rows.columns(op) else self._all(value) for value in op.inputs]
            made = tile.ElementwiseOp(op.fn.data, inputs, self._all(op.target))
            made.attributes.update(op.attributes)
            self._insert(made, op)
        Rewriter.erase_op(self.rows.loop)

    def _insert(self, op: Operation, like: Operation) -> None:
        op.location = like.location
        Rewriter().insert_op(op, InsertPoint.before(self.rows.loop))

    def _all(self, value: SSAValue) -> SSAValue:
        """An operand of all rows."""
        row = self.rows.row(value) if isinstance(value.type, MemRefType) else None
        return self._in_first(value) if row is None else self._region(row, row.all_kept, value)

    def _column(self, value: SSAValue, beside: _OneRow) -> SSAValue:
        """The elements of all rows, of size 1 along the other axes."""
        row = self.rows.row(value)
        assert row is not None
        rank = len(beside.all_kept)
        if len(row.offsets) == rank and row.axis == 0:
            return self._region(row, range(rank), value)
        line = self._region(row, [row.axis], value)
        kind = line.type
        assert isinstance(kind, MemRefType)
        offset = kind.layout.get_offset() if isinstance(kind.layout, StridedLayoutAttr) else 0
        shape = [self.count, *[1] * (rank - 1)]
        view = tile.ViewOp(line, MemRefType(kind.element_type, shape, StridedLayoutAttr([1] * rank, offset), kind.memory_space))
        self._insert(view, _owner(value))
        return view.result

    def _region(self, row: _OneRow, kept: Sequence[int], value: SSAValue) -> SSAValue:
        sizes = [self.count if axis == row.axis else self._number(size) for axis, size in enumerate(row.sizes)]
        offsets = [self._number(offset) for offset in row.offsets]
        if not any(offset != 0 for offset in offsets) and (*sizes,) == tile.shape_of(row.source) and len(kept) == len(sizes):
            return self._in_first(row.source)
        region = tile.RegionOp(self._in_first(row.source), offsets, sizes, kept)
        self._insert(region, _owner(value))
        return region.result

    def _number(self, value: SSAValue | int) -> SSAValue | int:
        form, index = affine(value), self.rows.index
        first = form + form.factor(index) * (affine(self.rows.loop.lb) - Linear.of(index))
        return first.constant if first.known or isinstance(value, int) else self._in_first(value)

    def _in_first(self, value: SSAValue) -> SSAValue:
        """What a value is in the first iteration."""
        owner = value.owner
        if value not in self._first and isinstance(owner, Operation) and owner.parent_block() is self.rows.loop.body.block:
            for operand in owner.operands:
                self._in_first(operand)
            made = owner.clone(self._first)
            self._insert(made, owner)
            self._first.update(zip(owner.results, made.results, strict=True))
        return self._first.get(value, value)


def _owner(value: SSAValue) -> Operation:
    assert isinstance(value.owner, Operation)
    return value.owner


def _row_loops(module: ModuleOp) -> Iterator[_RowLoop]:
    ranges = Ranges()
    for loop in [op for op in module.walk() if isinstance(op, scf.ForOp)]:
        rows = _RowLoop(loop, ranges)
        if rows.is_plain() and rows.rows != 0:
            yield rows


@dataclass(frozen=True)
class CollapseRows(ModulePass):
    """The pass.

    Attributes:
        chip: whose UB the scratch must fit.
        collapse: whether it does anything.
        trial: plans the memories of a module, which is lost, and says what there is no room for; without it all buffers must
            fit beside each other.
    """

    name = "collapse-rows"
    chip: str = chips.DEFAULT
    collapse: bool = True
    trial: Callable[[ModuleOp], str | None] | None = None

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for rows in list(_row_loops(op)) if self.collapse else ():
            label, place = _label(rows.work[0].target), location_of(rows.loop)
            kept = _kept(rows) or self._crowded(op, rows)
            if kept is not None:
                record_refusal(op, self.name, place, f"rows of {label} are done one by one: {kept.why}", kept.edit)
                continue
            assert rows.rows is not None
            record_done(op, self.name, place, f"the {rows.rows} rows of {label} are done at once")
            _AllRows(rows, rows.rows).write()

    def _crowded(self, module: ModuleOp, rows: _RowLoop) -> Refusal | None:
        """Why there is no room for the scratch that spreading takes; None where there is."""
        scratch, room = _scratch(rows), chips.chip(self.chip).memory["ub"].size
        taken = scratch + sum(nbytes_of(inner.result) for inner in module.walk()
                              if isinstance(inner, tile.AllocOp) and space_of(inner.result) == "ub")
        if not scratch or taken <= room:
            return None
        lack = f"the buffers in UB take {spaced(taken - scratch)} side by side, and {spaced(room)} are there"
        if self.trial is not None:
            copied = module.clone()
            twin = next(other for other, one in zip(copied.walk(), module.walk(), strict=True) if one is rows.loop)
            assert isinstance(twin, scf.ForOp) and rows.rows is not None
            _AllRows(_RowLoop(twin, Ranges()), rows.rows).write()
            tried = self.trial(copied)
            if tried is None:
                return None
            lack = tried
        return Refusal(f"spreading an element for each row takes {spaced(scratch)} bytes of scratch: {lack}",
                       f"shrink the tiles to {room * 100 // taken} % or less")


__all__ = ["CollapseRows"]
