"""Replaces a loop of elementwise operations on one row per iteration by elementwise operations on all rows at once.

Each iteration of ``for r in T.serial(n): T.tile.sub(x[r, :], x[r, :], m[r])`` accesses row ``r`` of a tile, and one element
that the scalar unit loads for the row. The pass replaces the rows by the whole tile, and the elements by a column, which the
vector instruction broadcasts along the rows. So no scalar is loaded, and no instruction waits for a scalar.

The rewrite is sound because, of the buffers that the loop writes, an iteration accesses only the row that it writes. Each
statement can therefore be executed for all rows before the next statement. A loop with a barrier or a flag of the author is not
rewritten.

The pass runs once memories are known and rows are divided between the Vector cores.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, memref, scf
from xdsl.dialects.builtin import MemRefType, ModuleOp, StridedLayoutAttr
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from tilelang_npu import target as chips
from tilelang_npu.analysis.buffer_sizes import nbytes_of, spaced
from tilelang_npu.analysis.buffers import element_bytes, root_of, space_of
from tilelang_npu.analysis.ranges import Ranges
from tilelang_npu.dialects import tile
from tilelang_npu.dialects.ir.affine_sums import affine
from tilelang_npu.dialects.ir.remarks import record_done, record_refusal
from tilelang_npu.dialects.text import location_of
from tilelang_npu.dialects.text.names import author_name
from tilelang_npu.linear import Linear
from tilelang_npu.ops.spec import Composite
from tilelang_npu.target import BLOCK
from tilelang_npu.transforms.infra.optimisations import Refusal
from tilelang_npu.transforms.infra.plan_trial import PassWithPlanTrial

_INDEX_OPS = (arith.ConstantOp, arith.AddiOp, arith.SubiOp, arith.MuliOp, arith.IndexCastOp)
"""Operations that the loop may contain besides the vector work: they compute row and column indices."""
_BROADCAST_BYTES = (2, 4)
"""Element sizes, in bytes, that a vector instruction broadcasts along a row."""
_MOST_AXES = 2
"""The largest number of axes of a tile along whose rows a vector instruction broadcasts an element."""


@dataclass(frozen=True)
class _RowAccess:
    """The part of a buffer that an iteration accesses: one row, or one element of a column.

    Attributes:
        source: the buffer, or a view of it.
        offsets: the first index of the region along each axis of the source.
        sizes: the size of the region along each axis of the source.
        kept: the axes of the source that the operand has; the region has size 1 along the others.
        axis: the axis of the source along which each iteration advances by one row; the operand has no axis before this one.
    """

    source: SSAValue
    offsets: Sequence[SSAValue | int]
    sizes: Sequence[SSAValue | int]
    kept: Sequence[int]
    axis: int

    @property
    def all_kept(self) -> Sequence[int]:
        """The axes of the region of all rows; the rows lie along the first."""
        return sorted({*self.kept, self.axis})


class _RowLoop:
    """A loop over rows.

    Args:
        loop: the loop.
        ranges: bounds of scalars.

    Attributes:
        work: the vector operations of the body.
        rows: the trip count; None where it is not constant.
    """

    def __init__(self, loop: scf.ForOp, ranges: Ranges) -> None:
        self.loop, self.index = loop, loop.body.block.args[0]
        self.work = [op for op in loop.body.block.ops if isinstance(op, tile.ElementwiseOp)]
        self.rows = ranges.trip_count(loop).constant
        self._variant_values: set[SSAValue] = {self.index}
        for op in loop.body.block.ops:
            if any(value in self._variant_values for value in op.operands):
                self._variant_values.update(op.results)

    def is_variant(self, value: SSAValue | int) -> bool:
        """Whether a value changes from iteration to iteration."""
        return not isinstance(value, int) and value in self._variant_values

    def row_access(self, value: SSAValue) -> _RowAccess | None:
        """Returns the row, or element, of a buffer that an operand is; None where it is neither."""
        owner = value.owner
        if isinstance(owner, tile.RegionOp):
            return self._row_along_axis(owner.source, owner.mixed_offsets(), owner.mixed_sizes(), list(owner.kept.get_values()))
        if isinstance(owner, memref.LoadOp):
            return self._row_along_axis(owner.memref, list(owner.indices), [1] * len(owner.indices), [])
        return None

    def _row_along_axis(self, source: SSAValue, offsets: Sequence[SSAValue | int], sizes: Sequence[SSAValue | int],
                        kept: Sequence[int]
               ) -> _RowAccess | None:
        axes = [axis for axis, offset in enumerate(offsets) if self.is_variant(offset)]
        if len(axes) != 1 or sizes[axes[0]] != 1 or any(map(self.is_variant, sizes)) or self.is_variant(source) or (
                kept and kept[0] < axes[0]):
            return None
        form = affine(offsets[axes[0]])
        rest, extent = form - Linear.of(self.index), tile.shape_of(source)[axes[0]]
        first = rest + affine(self.loop.lb)
        # A row outside of the buffer is an error that the lowering of the loop reports, with the row.
        beyond = first.known and (first.constant < 0 or first.constant + (self.rows or 0) > extent)
        if form.factor(self.index) != 1 or any(map(self.is_variant, rest.terms)) or beyond:
            return None
        return _RowAccess(source, offsets, sizes, kept, axes[0])

    def can_collapse(self) -> bool:
        """Whether the body is vector work on one row each, and no iteration accesses a row that another one writes."""
        body = self.loop.body.block
        if self.loop.iter_args or tile.stages_of(self.loop) > 1 or not self.work or not all(
                isinstance(op, (*_INDEX_OPS, tile.RegionOp, memref.LoadOp, tile.ElementwiseOp, scf.YieldOp))
                for op in body.ops):
            return False
        written: dict[SSAValue, _RowAccess] = {}
        for op in self.work:
            row = self.row_access(op.target)
            if row is None or not all(self._is_row_or_scalar(value, row) for value in op.inputs) or (
                    len(row.all_kept) > _MOST_AXES and self.column_elements(op)):
                return False
            written.setdefault(root_of(op.target), row)
        accessed = [value for op in self.work for value in op.operands if isinstance(value.type, MemRefType)]
        accessed += [op.memref for op in body.ops if isinstance(op, memref.LoadOp)]
        return all(self._is_own_row(value, written) for value in accessed if root_of(value) in written)

    def _is_row_or_scalar(self, value: SSAValue, row: _RowAccess) -> bool:
        """Whether an operand is a row with as many axes as the written one, an element of a column, or a loop-invariant scalar.
        """
        own = self.row_access(value)
        if not isinstance(value.type, MemRefType):
            return not self.is_variant(value) or own is not None
        return own is not None and len(own.all_kept) == len(row.all_kept)

    def _is_own_row(self, value: SSAValue, written: dict[SSAValue, _RowAccess]) -> bool:
        """Whether an access to a buffer that the loop writes is to the row that the iteration writes."""
        row, other = self.row_access(value), written[root_of(value)]
        return (row is not None and row.source is other.source and row.axis == other.axis
                and affine(row.offsets[row.axis]) == affine(other.offsets[other.axis]))

    def column_elements(self, op: tile.ElementwiseOp) -> list[SSAValue]:
        """Returns the inputs of an operation that are an element for each row."""
        return [value for value in op.inputs if not isinstance(value.type, MemRefType) and self.is_variant(value)]


def _why_not_collapsed(rows: _RowLoop) -> Refusal | None:
    """Returns why a loop stays; None where its rows can be done at once if the scratch has room."""
    if rows.rows is None:
        return Refusal("the number of rows is known only at run time", "give the loop a constant number of iterations")
    for op in rows.work:
        for value in (one for one in op.operands if isinstance(one.type, MemRefType)):
            row, width = rows.row_access(value), element_bytes(value)
            if row is not None and (pitch := _row_stride(row) * width) % BLOCK:
                return Refusal(f"rows of {_buffer_label(value)} begin {pitch} bytes apart, and a vector operation on all "
                               f"rows needs rows that begin a multiple of {BLOCK} bytes apart",
                               f"give {_buffer_label(value)} rows of a multiple of {BLOCK // width} elements")
        for value in rows.column_elements(op):
            owner, entry = value.owner, op.entry()
            assert isinstance(owner, memref.LoadOp)
            label = _buffer_label(owner.memref)
            if space_of(root_of(owner.memref)) == "gm":
                return Refusal(f"{label} is in GM, from which only the scalar unit can read single elements",
                               f"T.copy the elements of {label} to a buffer, and read the buffer")
            row = rows.row_access(value)
            if row is None or _row_stride(row) != 1:
                return Refusal(f"the elements of {label} are not contiguous",
                               f"let {label} have one element for each row, in consecutive elements")
            can_broadcast = not isinstance(entry, Composite) and entry.broadcast and not entry.shifts
            if not can_broadcast or element_bytes(owner.memref) not in _BROADCAST_BYTES:
                return Refusal(f"{entry.name} cannot broadcast {value.type} elements of {label} along a row",
                               f"T.tile.broadcast {label} to a tile before the loop, and use the rows of that tile")
    return None


def _row_stride(row: _RowAccess) -> int:
    """Returns the elements from one row to the next; -1 where they are known only at run time."""
    kind = row.source.type
    assert isinstance(kind, MemRefType)
    stride = (kind.get_strides() or [])[row.axis]
    return -1 if stride is None else stride


def _buffer_label(value: SSAValue) -> str:
    return author_name(root_of(value), "the tile")


class _AllRows:
    """Emits the work of all rows before a loop."""

    def __init__(self, rows: _RowLoop, count: int) -> None:
        self.rows, self.count = rows, count
        self._first: dict[SSAValue, SSAValue] = {rows.index: rows.loop.lb}

    def emit(self) -> None:
        for op in self.rows.work:
            row = self.rows.row_access(op.target)
            assert row is not None
            inputs = [self._column_of_all_rows(value, row) if value in self.rows.column_elements(op)
                      else self._all_rows_of(value)
                      for value in op.inputs]
            made = tile.ElementwiseOp(op.fn.data, inputs, self._all_rows_of(op.target))
            made.attributes.update(op.attributes)
            self._insert_before_loop(made, op)
        Rewriter.erase_op(self.rows.loop)

    def _insert_before_loop(self, op: Operation, like: Operation) -> None:
        op.location = like.location
        Rewriter().insert_op(op, InsertPoint.before(self.rows.loop))

    def _all_rows_of(self, value: SSAValue) -> SSAValue:
        """Returns an operand of one row as the operand of all rows."""
        row = self.rows.row_access(value) if isinstance(value.type, MemRefType) else None
        return self._in_first_iteration(value) if row is None else self._region_of_all_rows(row, row.all_kept, value)

    def _column_of_all_rows(self, value: SSAValue, target: _RowAccess) -> SSAValue:
        """Returns the elements of all rows as a column: a tile of size 1 along the other axes."""
        row = self.rows.row_access(value)
        assert row is not None
        rank = len(target.all_kept)
        if len(row.offsets) == rank and row.axis == 0:
            return self._region_of_all_rows(row, range(rank), value)
        line = self._region_of_all_rows(row, [row.axis], value)
        kind = line.type
        assert isinstance(kind, MemRefType)
        offset = kind.layout.get_offset() if isinstance(kind.layout, StridedLayoutAttr) else 0
        shape = [self.count, *[1] * (rank - 1)]
        view = tile.ViewOp(line, MemRefType(kind.element_type, shape, StridedLayoutAttr([1] * rank, offset), kind.memory_space))
        self._insert_before_loop(view, _defining_op(value))
        return view.result

    def _region_of_all_rows(self, row: _RowAccess, kept: Sequence[int], value: SSAValue) -> SSAValue:
        sizes = [self.count if axis == row.axis else self._first_value(size) for axis, size in enumerate(row.sizes)]
        offsets = [self._first_value(offset) for offset in row.offsets]
        if not any(offset != 0 for offset in offsets) and (*sizes,) == tile.shape_of(row.source) and len(kept) == len(sizes):
            return self._in_first_iteration(row.source)
        region = tile.RegionOp(self._in_first_iteration(row.source), offsets, sizes, kept)
        self._insert_before_loop(region, _defining_op(value))
        return region.result

    def _first_value(self, value: SSAValue | int) -> SSAValue | int:
        form, index = affine(value), self.rows.index
        first = form + form.factor(index) * (affine(self.rows.loop.lb) - Linear.of(index))
        return first.constant if first.known or isinstance(value, int) else self._in_first_iteration(value)

    def _in_first_iteration(self, value: SSAValue) -> SSAValue:
        """Emits the value that a value has in the first iteration."""
        owner = value.owner
        if value not in self._first and isinstance(owner, Operation) and owner.parent_block() is self.rows.loop.body.block:
            for operand in owner.operands:
                self._in_first_iteration(operand)
            made = owner.clone(self._first)
            self._insert_before_loop(made, owner)
            self._first.update(zip(owner.results, made.results, strict=True))
        return self._first.get(value, value)


def _defining_op(value: SSAValue) -> Operation:
    assert isinstance(value.owner, Operation)
    return value.owner


def _row_loops(module: ModuleOp) -> Iterator[_RowLoop]:
    ranges = Ranges()
    for loop in [op for op in module.walk() if isinstance(op, scf.ForOp)]:
        rows = _RowLoop(loop, ranges)
        if rows.can_collapse() and rows.rows != 0:
            yield rows


@dataclass(frozen=True)
class CollapseRows(PassWithPlanTrial):
    """Replaces a loop of elementwise operations on one row per iteration by elementwise operations on all rows at once.

    The rewrite is tried on a copy of the module first if UB possibly has no room for the scratch memory of broadcasting.
    """

    name = "collapse-rows"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for rows in list(_row_loops(op)) if self.enabled else ():
            label, place = _buffer_label(rows.work[0].target), location_of(rows.loop)
            kept = _why_not_collapsed(rows) or self._why_no_room(op, rows)
            if kept is not None:
                record_refusal(op, self.name, place, f"rows of {label} are processed one by one: {kept.why}", kept.edit)
                continue
            assert rows.rows is not None
            record_done(op, self.name, place, f"the {rows.rows} rows of {label} are processed at once, without a loop")
            _AllRows(rows, rows.rows).emit()

    def _why_no_room(self, module: ModuleOp, rows: _RowLoop) -> Refusal | None:
        """Returns why the scratch of broadcasting does not fit; None where it does."""
        # Broadcasting takes one block of scratch for each row (docs/hivm.md#scratch).
        scratch = (rows.rows or 0) * BLOCK if any(map(rows.column_elements, rows.work)) else 0
        room = chips.chip(self.chip).memory["ub"].size
        taken = scratch + sum(nbytes_of(inner.result) for inner in module.walk()
                              if isinstance(inner, tile.AllocOp) and space_of(inner.result) == "ub")
        if not scratch or taken <= room:
            return None
        copied = module.clone()
        twin = next(other for other, one in zip(copied.walk(), module.walk(), strict=True) if one is rows.loop)
        assert isinstance(twin, scf.ForOp) and rows.rows is not None
        _AllRows(_RowLoop(twin, Ranges()), rows.rows).emit()
        lack = self.missing_room(copied)
        if lack is None:
            return None
        return Refusal(f"broadcasting one element along each row takes {spaced(scratch)} bytes of scratch, for which memory "
                       f"planning finds no room: {lack}",
                       f"shrink the tiles to {room * 100 // taken} % or less")


__all__ = ["CollapseRows"]
