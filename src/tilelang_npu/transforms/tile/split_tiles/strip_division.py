"""Finds statements that can be executed strip by strip, and the buffers of which each strip needs only a part.

A division has an axis of each of its buffers, all of the same size, such as the rows of two matrices and of a column with a sum
of each row. A statement can be divided if it computes each row (in general: each position along these axes) from the same row
of its operands. Then a loop over strips of rows that executes all statements for one strip computes the same values as the
statements one after the other, in the same order for each element.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from math import prod

from xdsl.dialects import memref, scf
from xdsl.dialects.builtin import MemRefType, NoneAttr
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from tilelang_npu.analysis.accesses import conflicting_buffers
from tilelang_npu.analysis.buffer_sizes import nbytes_of
from tilelang_npu.analysis.buffers import element_bytes, is_managed, root_of, space_of, users_of
from tilelang_npu.analysis.first_writes import may_read_earlier_value
from tilelang_npu.analysis.nesting import is_defined_in
from tilelang_npu.analysis.ranges import Ranges
from tilelang_npu.dialects import tile
from tilelang_npu.dialects.ir.affine_sums import affine
from tilelang_npu.dialects.ir.effects import Effect, effects_of, is_pure
from tilelang_npu.linear import Linear
from tilelang_npu.target import BLOCK

VIEWS = (tile.RegionOp, tile.ViewOp)
_TILE_OPS = (tile.CopyOp, tile.ElementwiseOp, tile.ReduceOp, tile.FillOp, tile.BroadcastOp)
"""The operations on whole tiles that compute a row of the result from the same row of each operand."""

_FRACTAL = 16
"""Rows of the fractals in which matrices of products lie."""


class NotDivisibleError(Exception):
    """A statement does not compute each row from the same row of its operands."""


@dataclass(frozen=True)
class _TensorAccess:
    """An access of a divided statement to a tensor in GM.

    Attributes:
        writes: whether the statement writes the tensor.
        tensor: the view of the kernel's argument as a tensor.
        axis: the axis of the tensor along which the rows lie; None where each strip accesses the same elements, or any.
        first: the index along this axis that the first row accesses.
    """

    writes: bool
    tensor: SSAValue
    axis: int | None
    first: Linear[SSAValue] | None


@dataclass
class Division:
    """Statements of a block that are executed strip by strip.

    Attributes:
        block: the block.
        extent: the number of rows.
        axes: for each buffer that the statements access by rows, the axis along which the rows lie.
        points: for each ``T.Parallel``, the axis of its iteration space whose points are the rows.
        operand_axes: for each operation on tiles and each index of an operand that a strip has a part of, the operand's axis
            along which the rows lie.
        statements: the statements, in program order.
        shrunk: the buffers of ``axes`` of which only one strip exists at a time.
        ranges: bounds of scalars.
    """

    block: Block
    extent: int
    axes: dict[SSAValue, int]
    points: dict[Operation, int] = field(default_factory=dict)
    operand_axes: dict[tuple[Operation, int], int] = field(default_factory=dict)
    statements: list[Operation] = field(default_factory=list)
    shrunk: set[SSAValue] = field(default_factory=set)
    ranges: Ranges = field(default_factory=Ranges)
    _tensors: dict[SSAValue, list[_TensorAccess]] = field(default_factory=dict)
    _repeated: list[Operation] = field(default_factory=list)

    def find(self, extend_above: int) -> None:
        """Finds the statements and the buffers, from those that ``axes`` and ``points`` have already.

        Args:
            extend_above: the statements go from the first to the last that accesses a buffer with more bytes than this one.

        Raises:
            NotDivisibleError: there is a statement that cannot be divided.
        """
        known = -1
        while known != len(self.axes) + len(self.points):
            known = len(self.axes) + len(self.points)
            self.operand_axes.clear()
            self._tensors.clear()
            self._repeated.clear()
            self.statements = self._statements_in_range(extend_above)
            for op in self.statements:
                self._visit(op)
        self._check_other_statements()
        self._check_tensors()
        self.shrunk = {buffer for buffer in self.axes if self._is_local(buffer)}

    def shrunk_allocations(self) -> list[tile.AllocOp]:
        """Returns the allocations of the buffers of ``shrunk``."""
        return [buffer.owner for buffer in self.axes if buffer in self.shrunk and isinstance(buffer.owner, tile.AllocOp)]

    @property
    def has_product(self) -> bool:
        """Whether a statement is, or contains, a product."""
        return any(isinstance(op, tile.GemmOp) for statement in self.statements for op in statement.walk())

    @property
    def unit(self) -> str:
        """What strips consist of, for messages: rows or columns."""
        return "columns" if any(axis > 0 for axis in (*self.axes.values(), *self.points.values())) and not any(
            axis == 0 and len(tile.shape_of(buffer)) > 1 for buffer, axis in self.axes.items()) else "rows"

    @property
    def saved(self) -> int:
        """The bytes of the buffers of which only one strip exists at a time."""
        return sum(map(nbytes_of, self.shrunk))

    def granularity(self) -> int:
        """Returns a number of rows; if strips have a multiple of it, the parts of buffers begin at blocks of UB."""
        unit = _FRACTAL if self.has_product else 1
        for buffer, axis in self.axes.items():
            shape = tile.shape_of(buffer)
            row = prod(shape[axis + 1:]) * element_bytes(buffer)
            if buffer not in self.shrunk or (axis > 0 and prod(shape[:axis]) > 1):
                while unit * row % BLOCK:
                    unit *= 2
        return unit

    def _statements_in_range(self, extend_above: int) -> list[Operation]:
        anchors = {op for buffer in self.axes if nbytes_of(buffer) > extend_above for op in users_of(buffer)
                   if not isinstance(op, VIEWS)} | set(self.points)
        placed = {top for op in anchors if (top := self._statement_of(op)) is not None}
        ops = list(self.block.ops)
        numbers = [number for number, op in enumerate(ops) if op in placed]
        if not numbers:
            msg = "no statement of the block accesses the buffer"
            raise NotDivisibleError(msg)
        return [op for op in ops[numbers[0]:numbers[-1] + 1]
                if not isinstance(op, (*VIEWS, tile.AllocOp)) and self._is_divided(op)]

    def _statement_of(self, op: Operation) -> Operation | None:
        """Returns the statement of the block that is or contains an operation; None where the operation is outside of it."""
        around: Operation | None = op
        while around is not None and around.parent_block() is not self.block:
            around = around.parent_op()
        return around

    def _is_divided(self, op: Operation) -> bool:
        """Whether an operation is, or contains, a ``T.Parallel`` of the division or an access to one of its buffers."""
        return any(inner in self.points or any(root_of(value) in self.axes for value in inner.operands
                                               if isinstance(value.type, MemRefType))
                   for inner in op.walk() if not isinstance(inner, VIEWS))

    def _visit(self, op: Operation) -> None:
        """Checks that a statement can be divided, and adds the buffers that are divided with it."""
        if isinstance(op, tile.ParallelOp):
            self._visit_parallel(op)
        elif isinstance(op, scf.ForOp | scf.IfOp):
            if op.results or tile.SCHEDULE in op.attributes:
                msg = "a loop or branch has scalar results, or a schedule of the author"
                raise NotDivisibleError(msg)
            for region in op.regions:
                for inner in region.block.ops if region.blocks else ():
                    if isinstance(inner, (*VIEWS, tile.AllocOp, scf.YieldOp)) or is_pure(inner):
                        continue
                    if self._is_divided(inner):
                        self._visit(inner)
                    else:
                        self._repeated.append(inner)
        elif isinstance(op, tile.GemmOp):
            self._visit_gemm(op)
        elif isinstance(op, _TILE_OPS):
            self._visit_tile_op(op)
        else:
            msg = f"{op.name} is no operation that computes row by row"
            raise NotDivisibleError(msg)

    def _visit_tile_op(self, op: Operation) -> None:
        swapped = isinstance(op, tile.CopyOp) and op.transpose is not None
        if isinstance(op, tile.CopyOp) and op.halves is not None:
            msg = "a copy divides its rows between the Vector cores"
            raise NotDivisibleError(msg)

        def of_target(index: int, axis: int, rank: int) -> int:
            """Translates an axis of an operand to an axis of the target, or back."""
            return axis if not swapped or index != 0 or axis < rank - 2 else 2 * rank - 3 - axis

        uses = {use.index: use for use in effects_of(op)}
        axis: int | None = None
        for index, use in uses.items():
            root = root_of(use.value)
            if root in self.axes:
                found = self.operand_axis(use.value, self.axes[root])
                rank = len(tile.shape_of(use.value))
                if found is None or axis not in (None, of_target(index, found, rank)):
                    msg = "the operands do not have the same rows"
                    raise NotDivisibleError(msg)
                axis = of_target(index, found, rank)
        assert axis is not None
        if isinstance(op, tile.ReduceOp) and axis in op.dims.get_values():
            msg = "a reduction combines the rows"
            raise NotDivisibleError(msg)
        for index, use in uses.items():
            shape, root = tile.shape_of(use.value), root_of(use.value)
            own = of_target(index, axis, len(shape))
            size = shape[own] if own < len(shape) else 0
            if space_of(root) == "gm":
                if size != self.extent:
                    msg = "a copy from or to GM is clipped, and the number of its rows is not that of the tile"
                    raise NotDivisibleError(msg)
                self._tensors.setdefault(root, []).append(self._tensor_access(use, own))
            elif root not in self.axes:
                if size == 1 and self.extent > 1 and not use.writes:
                    continue
                inner = self._root_axis(use.value, own)
                if size != self.extent or inner is None:
                    msg = "the operands do not have the same rows"
                    raise NotDivisibleError(msg)
                self._add(root, inner)
            self.operand_axes[op, index] = own

    def _visit_gemm(self, op: tile.GemmOp) -> None:
        """Checks that a strip is rows of A and C, or columns of B and C."""
        if op.scale_a is not None:
            msg = "a product of MX matrices has scales"
            raise NotDivisibleError(msg)
        rows = {0: 1 if op.transpose_a is not None else 0, 2: 0}
        columns = {1: 0 if op.transpose_b is not None else 1, 2: 1}
        for axes in (rows, columns):
            if all(index in axes and self.operand_axis(value, self.axes[root_of(value)]) == axes[index]
                   for index, value in enumerate(op.operands) if root_of(value) in self.axes):
                break
        else:
            msg = "a product adds up over the rows"
            raise NotDivisibleError(msg)
        for index, axis in axes.items():
            value = op.operands[index]
            inner = self._root_axis(value, axis)
            if inner is None or tile.shape_of(value)[axis] != self.extent:
                msg = "a product has another number of rows"
                raise NotDivisibleError(msg)
            self._add(root_of(value), inner)
            self.operand_axes[op, index] = axis

    def _add(self, root: SSAValue, axis: int) -> None:
        if not isinstance(root.owner, tile.AllocOp) or self.axes.setdefault(root, axis) != axis:
            msg = "a buffer is accessed by rows along different axes"
            raise NotDivisibleError(msg)

    def _visit_parallel(self, op: tile.ParallelOp) -> None:
        arguments, body = op.body.block.args, list(op.body.walk())
        accesses: list[tuple[Operation, SSAValue, list[SSAValue | int], bool]] = []
        for inner in body:
            if isinstance(inner, memref.LoadOp | memref.StoreOp):
                accesses.append((inner, inner.memref, list(inner.indices), isinstance(inner, memref.StoreOp)))
            elif isinstance(inner, tile.RegionOp):
                writes = any(isinstance(use.operation, tile.CopyOp) and use.index == 1 for use in inner.result.uses)
                accesses.append((inner, inner.source, inner.mixed_offsets(), writes))
            elif isinstance(inner, tile.CopyOp):
                if not all(isinstance(end.owner, tile.RegionOp) and end.owner in body for end in (inner.source, inner.target)):
                    msg = "a point copies a whole buffer"
                    raise NotDivisibleError(msg)
            elif not (is_pure(inner) or isinstance(inner, scf.IfOp | scf.ForOp | scf.YieldOp | tile.YieldOp)):
                msg = f"{inner.name} is no operation that computes row by row"
                raise NotDivisibleError(msg)
        for inner, value, indices, _ in accesses:
            root = root_of(value)
            if isinstance(value.owner, VIEWS) and value.owner in body:
                msg = "a point accesses a part of a part of a buffer"
                raise NotDivisibleError(msg)
            if root in self.axes:
                axis = self.operand_axis(value, self.axes[root])
                row = _argument(indices[axis], arguments) if axis is not None else None
                if row is None or self.points.setdefault(op, row.index) != row.index or (
                        isinstance(inner, tile.RegionOp) and inner.mixed_sizes()[axis or 0] != 1):
                    msg = "a point accesses another row of a buffer"
                    raise NotDivisibleError(msg)
        row = arguments[self.points[op]]
        if op.mixed_extents()[row.index] != self.extent:
            msg = "T.Parallel has another number of rows"
            raise NotDivisibleError(msg)
        for _, value, indices, writes in accesses:
            root = root_of(value)
            if root in self.axes:
                continue
            if space_of(root) == "gm":
                axis = next((axis for axis, index in enumerate(indices) if affine(index).factor(row) == 1), None)
                first = affine(indices[axis]) - Linear.of(row) if axis is not None else None
                self._tensors.setdefault(root, []).append(_TensorAccess(writes, value, axis, first))
                continue
            axis = next((axis for axis, index in enumerate(indices) if _argument(index, arguments) is row), None)
            inner_axis = self._root_axis(value, axis) if axis is not None else None
            if axis is not None and inner_axis is not None and tile.shape_of(value)[axis] == self.extent:
                self._add(root, inner_axis)
            elif writes:
                msg = "points of several rows store to the same elements of a buffer"
                raise NotDivisibleError(msg)

    def operand_axis(self, value: SSAValue, axis: int) -> int | None:
        """Returns the axis of an operand along which an axis of its buffer lies; None where the operand has not all of it."""
        owner = value.owner
        if isinstance(owner, tile.AllocOp):
            return axis
        if isinstance(owner, tile.RegionOp):
            of_source = self.operand_axis(owner.source, axis)
            if of_source is None or owner.mixed_offsets()[of_source] != 0 or (
                    owner.mixed_sizes()[of_source] != tile.shape_of(owner.source)[of_source]):
                return None
            kept = list(owner.kept.get_values())
            return kept.index(of_source) if of_source in kept else None
        if isinstance(owner, tile.ViewOp) and (of_source := self.operand_axis(owner.source, axis)) is not None:
            return _axis_of_view(owner, owner.source, owner.result, of_source)
        return None

    def _root_axis(self, value: SSAValue, axis: int) -> int | None:
        """Returns the axis of the buffer of an operand that an axis of the operand has all of; None where there is none."""
        root = root_of(value)
        if not isinstance(root.owner, tile.AllocOp):
            return None
        return next((each for each in range(len(tile.shape_of(root))) if self.operand_axis(value, each) == axis), None)

    def _tensor_access(self, use: Effect, axis: int) -> _TensorAccess:
        """Returns the access of an operation to a tensor, from the axis of the operand along which the rows lie."""
        first, value = Linear[SSAValue](0), use.value
        while isinstance(value.owner, tile.RegionOp):
            region = value.owner
            axis = list(region.kept.get_values())[axis]
            first += affine(region.mixed_offsets()[axis])
            value = region.source
        if isinstance(value.owner, tile.ViewOp):
            return _TensorAccess(use.writes, value, None, None)
        return _TensorAccess(use.writes, value, axis, first)

    def _check_tensors(self) -> None:
        """Checks that no strip accesses an element of a tensor that another strip writes."""
        for accesses in self._tensors.values():
            if not any(access.writes for access in accesses):
                continue
            first = accesses[0]
            if first.axis is None or first.first is None or any(
                    (access.tensor, access.axis, access.first) != (first.tensor, first.axis, first.first)
                    for access in accesses) or any(
                    is_defined_in(value, inner) for value in first.first.terms for op in self.statements
                    for region in op.regions for inner in region.blocks):
                msg = "a tensor is stored to, and other rows of it possibly are accessed too"
                raise NotDivisibleError(msg)

    def _check_other_statements(self) -> None:
        """Checks that the other statements between the divided ones can be executed before them, or once for each strip."""
        before: list[Operation] = []
        divided = set(self.statements)
        op: Operation | None = self.statements[0]
        while op is not None and op is not self.statements[-1]:
            if op in divided:
                before.append(op)
            elif not (is_pure(op) or isinstance(op, (*VIEWS, tile.AllocOp))) and (
                    not _only_accesses_memory(op) or any(conflicting_buffers(op, other) for other in before)):
                msg = "another statement has to be executed in between"
                raise NotDivisibleError(msg)
            op = op.next_op
        written = {tensor for tensor, accesses in self._tensors.items() if any(access.writes for access in accesses)}
        for op in self._repeated:
            for use in (use for inner in op.walk() for use in effects_of(inner)):
                root = root_of(use.value)
                if not _only_accesses_memory(op) or root in written or (use.writes and not self._is_rewritten(root)):
                    msg = "another statement of a loop cannot be repeated for each strip"
                    raise NotDivisibleError(msg)

    def _is_rewritten(self, buffer: SSAValue) -> bool:
        """Whether the statements access a buffer on the chip only after they have overwritten it."""
        return isinstance(buffer.owner, tile.AllocOp) and self._is_local(buffer) and not may_read_earlier_value(
            self.statements, buffer, self.ranges)

    def _is_local(self, buffer: SSAValue) -> bool:
        """Whether only the divided statements access a buffer, and none reads what it held before."""
        users, inside = [op for op in users_of(buffer) if not isinstance(op, VIEWS)], set(self.statements)
        if not is_managed(buffer) or any(self._statement_of(op) not in inside for op in users):
            return False
        owner = buffer.owner
        assert isinstance(owner, tile.AllocOp)
        fresh = owner.parent_block() is self.block or self._statement_of(owner) in inside
        return fresh or not may_read_earlier_value(self.statements, buffer, self.ranges)


def _argument(index: SSAValue | int, arguments: Iterable[BlockArgument]) -> BlockArgument | None:
    """Returns the argument of a ``T.Parallel`` that an index is; None where it is none, or is computed from one."""
    form = affine(index)
    single = form.single
    if single is None or single[1] != 1 or form.constant != 0:
        return None
    return next((argument for argument in arguments if argument is single[0]), None)


def _axis_of_view(view: tile.ViewOp, source: SSAValue, target: SSAValue, axis: int) -> int | None:
    """Returns the axis of a view that is an axis of its source; None where the view cuts or merges it."""
    before, after = tile.shape_of(source), tile.shape_of(target)
    kind = view.result.type
    assert isinstance(kind, MemRefType)
    if element_bytes(source) != element_bytes(target) or not isinstance(kind.layout, NoneAttr):
        return None
    outer = prod(before[:axis])
    return next((each for each in range(len(after)) if after[each] == before[axis] and prod(after[:each]) == outer), None)


def _only_accesses_memory(op: Operation) -> bool:
    """Whether an operation and those in it have no effect but on their operands."""
    def is_known(inner: Operation) -> bool:
        if isinstance(inner, scf.ForOp | scf.IfOp | scf.YieldOp | tile.ParallelOp | tile.YieldOp | tile.AllocOp | tile.CallOp
                      | memref.LoadOp | memref.StoreOp | tile.GemmOp | tile.RegionOp | tile.ViewOp) or is_pure(inner):
            return True
        return isinstance(inner, _TILE_OPS)

    return all(map(is_known, op.walk()))


def blocks_within(launch: tile.LaunchOp) -> Iterator[Block]:
    """Yields the body of a launch and of each ``scf.for`` in it, outer ones first, without loops that the author scheduled."""
    yield launch.body.block
    for op in launch.walk():
        if isinstance(op, scf.ForOp) and tile.SCHEDULE not in op.attributes:
            yield op.body.block


def is_product_operand(buffer: SSAValue) -> bool:
    """Whether a buffer is an operand or the result of a product."""
    return any(isinstance(op, tile.GemmOp) for op in users_of(buffer))


__all__ = ["VIEWS", "Division", "NotDivisibleError", "blocks_within", "is_product_operand"]
