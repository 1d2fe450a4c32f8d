"""Finds the buffers in UB whose rows can be divided between the Vector cores of a block.

A divided buffer has an equal part of the rows (its first axis) on each Vector core: half of them on two cores.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from xdsl.dialects import memref, scf
from xdsl.dialects.builtin import MemRefType, ModuleOp
from xdsl.ir import Operation, SSAValue

from tilelang_npu.analysis.buffer_sizes import sized
from tilelang_npu.analysis.buffers import PARALLEL_LABEL, root_of, space_of, users_of, walk
from tilelang_npu.analysis.cores import core_of
from tilelang_npu.analysis.locations import line_of, location_of
from tilelang_npu.analysis.ranges import Ranges
from tilelang_npu.dialects import tile
from tilelang_npu.dialects.ir.changes import Unpinned
from tilelang_npu.dialects.ir.effects import Effect, effects_of
from tilelang_npu.dialects.ir.mlir_dtypes import dtype_of
from tilelang_npu.dialects.ir.remarks import Held, record_refusal
from tilelang_npu.target import BLOCK
from tilelang_npu.transforms.infra.optimisations import Refusal
from tilelang_npu.transforms.tile.bind_sub_blocks.rows import Rows, loop_over_rows, rows_of

NAME = "bind-sub-blocks"
_DIVIDE_BY_HAND = "divide the work in the kernel: T.Kernel(...) as (cid, vid), where vid is the number of the Vector core"

@dataclass
class RowDivision:
    """The division of the buffers of a launch between the Vector cores of a block.

    ``find_divided`` starts with all buffers in UB, and removes those that cannot be divided until no more has to be removed.

    Attributes:
        launch: the launch.
        ranges: bounds of scalars.
        parts: the number of Vector cores, and so of the parts of each divided buffer.
        divided: the allocations in UB that are divided.
        loops: the loops over the rows of divided buffers; each Vector core executes them for its part of the rows.
        reasons: for each buffer that was removed from ``divided``, the reason why the buffer stays whole.
    """

    launch: tile.LaunchOp
    ranges: Ranges
    parts: int
    divided: set[SSAValue] = field(default_factory=set)
    loops: set[scf.ForOp] = field(default_factory=set)
    reasons: dict[SSAValue, Refusal] = field(default_factory=dict)

    def find_divided(self) -> None:
        """Computes ``divided``, ``loops`` and ``reasons``."""
        for op in walk(self.launch.body.block):
            if isinstance(op, tile.AllocOp) and space_of(op.result) == "ub":
                rows = [*tile.shape_of(op.result), 1][0]
                if rows == 1:  # both cores keep a copy
                    continue
                self.divided.add(op.result)
                if op.address is not None:
                    self._keep_whole(Refusal("the author chose the buffer's address", "leave the address to the compiler",
                                             Unpinned(location_of(op))), op.result)
                elif rows % self.parts:
                    count = "an even number" if self.parts == 2 else f"a multiple of {self.parts}"
                    self._keep_whole(Refusal(f"the buffer's first axis has {rows} rows, not {count}",
                                             f"give the buffer {count} of rows"), op.result)
        before = -1
        while before != len(self.divided):
            before = len(self.divided)
            self.loops = {rows.loop for op in walk(self.launch.body.block) for _, rows in self.divided_rows_of(op)
                          if rows is not None and rows.loop is not None}
            for op in walk(self.launch.body.block):
                self._check_op(op)
            for loop in self.loops:
                if not self._is_independent_by_row(loop):
                    why = Refusal(f"the loop at {line_of(loop)} runs over the rows of the buffer, and an iteration does more "
                                  "than work on one row", "let each iteration of that loop write only the row of the iteration")
                    self._keep_whole(why, *(root for op in loop.walk() for root, rows in self.divided_rows_of(op)
                                            if rows is None or rows.loop is loop))

    def divided_rows_of(self, op: Operation) -> Iterator[tuple[SSAValue, Rows | None]]:
        """Yields the divided buffers that an operation accesses, each with the accessed rows (see ``rows_of_access``)."""
        for use in effects_of(op):
            root = root_of(use.value)
            if root in self.divided:
                yield root, self.rows_of_access(use)

    def rows_of_access(self, use: Effect) -> Rows | None:
        """Returns which rows of its buffer an access reads or writes; None where they are not known as ``Rows``.

        For a load or a store of a single element, the first index determines the row.
        """
        if not isinstance(use.op, (memref.LoadOp, memref.StoreOp)):
            return rows_of(use.value, self.ranges, self.parts)
        if isinstance(use.value.owner, (tile.RegionOp, tile.ViewOp)):
            return None
        loop = loop_over_rows(use.op.indices[0], 1, tile.shape_of(use.value)[0], self.ranges, self.parts)
        return None if loop is None else Rows(None, loop)

    def _keep_whole(self, why: Refusal, *buffers: SSAValue) -> None:
        """Takes buffers out of the division, for a reason."""
        for buffer in buffers:
            if buffer in self.divided:
                self.reasons[buffer] = why
        self.divided.difference_update(buffers)

    def report_whole_buffers(self, module: ModuleOp) -> None:
        """Records a remark for each buffer of the author that is not divided, with the reason."""
        for buffer, kept in self.reasons.items():
            assert isinstance(buffer.owner, tile.AllocOp)
            if buffer.owner.label.data != PARALLEL_LABEL:
                record_refusal(module, NAME, location_of(buffer.owner),
                               f"{sized(buffer)} is not divided between the Vector cores: {kept.why}", kept.edit,
                               Held((buffer.owner.label.data,), space_of(buffer)), change=kept.change)

    def _check_op(self, op: Operation) -> None:
        """Removes from the buffers to divide those operands that the operation cannot process in two halves of rows."""
        uses = [use for use in effects_of(op) if space_of(root_of(use.value)) == "ub"]
        halves = {root_of(use.value): self.rows_of_access(use) for use in uses if root_of(use.value) in self.divided}
        if not halves:
            return
        for root, rows in halves.items():
            if rows is None or len([use for use in uses if root_of(use.value) is root and self.rows_of_access(use) != rows]):
                self._keep_whole(Refusal(f"{line_of(op)} accesses rows of the buffer that possibly belong to different "
                                         "Vector cores",
                                         "access all rows at once, or row by row in a loop over all rows"), root)
        inside = self.halved_loop_around(op)
        strangers = [root for root, rows in halves.items() if rows is not None and rows.loop is not inside]
        self._keep_whole(Refusal(f"{line_of(op)} is in a loop over rows, and accesses other rows of the buffer than the row "
                                 "of the iteration", "access only the row of the iteration"), *strangers)
        if inside is not None or strangers:
            return
        axes = {rows.axis for rows in halves.values() if rows is not None}
        target = next((use for use in uses if use.writes), None)
        by_rows = (isinstance(op, tile.CallOp) and op.entry().by_rows and len(tile.shape_of(op.outputs[0])) - 1 not in axes
                   and all(root_of(use.value) in halves for use in uses))
        if by_rows or is_arange(op) or isinstance(
                op, (tile.CopyOp, tile.ElementwiseOp, tile.FillOp, tile.BroadcastOp, tile.ReduceOp)):
            self._check_all_rows(op, uses, target, halves, axes)
        else:
            self._keep_whole(Refusal(f"the operation at {line_of(op)} needs all rows of the buffer on one core",
                                     _DIVIDE_BY_HAND), *halves)

    def _check_all_rows(self, op: Operation, uses: list[Effect], target: Effect | None, halves: dict[SSAValue, Rows | None],
                        axes: set[int | None]) -> None:
        """Takes out the operands of an operation over all rows unless the operand that it writes is divided along the same
        axis.
        """
        if isinstance(op, tile.CopyOp) and (op.transpose is not None or tile.shape_of(op.source) != tile.shape_of(op.target)):
            self._keep_whole(Refusal(f"{line_of(op)} transposes the buffer, or copies between tiles of different shapes",
                                     _DIVIDE_BY_HAND), *halves)
        elif isinstance(op, tile.CopyOp) and is_copy_from_cube(op) and axes != {len(tile.shape_of(op.target)) - 2}:
            self._keep_whole(Refusal(f"{line_of(op)} copies a matrix from L0C to the buffer, and this copy can divide a "
                                     "matrix only along its rows", _DIVIDE_BY_HAND), *halves)
        elif target is None:  # a store to GM can take either half
            pass
        elif root_of(target.value) not in halves:
            self._keep_whole(Refusal(f"{line_of(op)} uses it to compute a buffer that is not divided",
                                     _DIVIDE_BY_HAND), *halves)
        else:
            place = halves[root_of(target.value)]
            along = place.axis if place is not None else None
            if isinstance(op, tile.ReduceOp) and along in op.dims.get_values():
                self._keep_whole(Refusal(f"{line_of(op)} reduces over the rows of the buffer", "reduce over another axis"),
                                 *halves)
            for root, rows in halves.items():
                if rows is not None and rows.axis != along:
                    self._keep_whole(Refusal(f"at {line_of(op)}, the rows of the buffer are on another axis than those of "
                                             "the result",
                                             _DIVIDE_BY_HAND), root)

    def halved_loop_around(self, op: Operation) -> scf.ForOp | None:
        """Returns the innermost of ``loops`` that contains an operation; None where there is none."""
        found = op.parent_op()
        while found is not None and found not in self.loops:
            found = found.parent_op()
        return found if isinstance(found, scf.ForOp) else None

    def _is_independent_by_row(self, loop: scf.ForOp) -> bool:
        """Whether the iterations of a loop over rows write nothing but their own rows, or buffers that die in the iteration."""
        if self.halved_loop_around(loop) is not None:
            return False
        variable = loop.body.block.args[0]
        for op in walk(loop.body.block):
            if op.name.startswith("hivm.") or core_of(op) == "AIC":
                return False
            for use in effects_of(op):
                root = root_of(use.value)
                space = space_of(root)
                if not use.writes or root in self.divided:
                    continue
                if space == "gm":
                    if not _depends_on(use.value, variable):
                        return False
                elif not _dies_in_iteration(root, loop):
                    return False
        return True

    def find_unaligned_half(self) -> tuple[Operation, Refusal] | None:
        """Finds an operation that would access an unaligned part of a buffer that is not divided.

        Such an operation has divided operands and, in UB, an operand that is not divided. Each Vector core takes a part of the
        latter, which must begin at a block of UB.

        Returns:
            The operation, and why it prevents the division; None if there is no such operation.
        """
        for op in walk(self.launch.body.block):
            halved = [(use, rows.axis) for use in effects_of(op) if root_of(use.value) in self.divided
                      and (rows := self.rows_of_access(use)) is not None and rows.axis is not None]
            if not halved or self.halved_loop_around(op) is not None:
                continue
            (first, axis), divided = halved[0], {root_of(use.value) for use, _ in halved}
            rows_there = tile.shape_of(first.value)[axis]
            for use in effects_of(op):
                shape = tile.shape_of(use.value)
                is_whole_in_ub = space_of(root_of(use.value)) == "ub" and root_of(use.value) not in divided
                takes_part = is_whole_in_ub and axis < len(shape) and shape[axis] == rows_there
                if takes_part and not parts_begin_at_blocks(use.value, axis, self.parts):
                    whole = sized(root_of(use.value))
                    part, each = ("half", "half") if self.parts == 2 else ("a part", "part")
                    why = (f"at {line_of(op)} each core would access {part} of {whole}, and the second {each} does not begin "
                           f"at a multiple of {BLOCK} bytes")
                    edit = f"choose the buffer's shape so that {part} of its rows takes a multiple of {BLOCK} bytes"
                    return op, Refusal(why, edit)
        return None

    def find_reload_from_gm(self) -> tuple[Operation, Refusal] | None:
        """Finds an operation that loads from a tensor in GM to which the Vector cores store. The rows of the block cannot be
        divided between its Vector cores then, because one core could load what the other has not stored yet.

        Returns:
            The operation and the reason in words; None if there is no such operation.
        """
        stored: dict[SSAValue, Operation] = {}
        loaded: dict[SSAValue, Operation] = {}
        for op in walk(self.launch.body.block):
            uses = list(effects_of(op))
            for use in uses if core_of(op) != "AIC" else ():
                root = root_of(use.value)
                if space_of(root) == "gm":
                    (stored if use.writes else loaded).setdefault(root, op)
        for root in stored.keys() & loaded.keys():
            why = f"{line_of(loaded[root])} loads from {root.name_hint or 'a tensor'} what {line_of(stored[root])} stores there"
            return loaded[root], Refusal(why, "keep the data in UB, or store to another tensor")
        return None


def is_arange(op: Operation) -> bool:
    """Whether an operation is ``arange``, which fills a tile with numbers computed from the row and column indices."""
    return isinstance(op, tile.CallOp) and op.entry().name == "arange"


def is_copy_from_cube(op: tile.CopyOp) -> bool:
    """Whether the Cube core executes a copy, and the copy's target is in UB, the memory of the Vector cores."""
    return core_of(op) == "AIC" and space_of(op.target) == "ub"


def _dies_in_iteration(buffer: SSAValue, loop: scf.ForOp) -> bool:
    """Whether a buffer is used in one loop alone, and each iteration overwrites it before it reads it."""
    first = True
    for op in walk(loop.body.block):
        uses = [use for use in effects_of(op) if root_of(use.value) is buffer]
        if uses and first:
            if not all(use.writes and not use.reads for use in uses) or op.parent_block() is not loop.body.block:
                return False
            first = False
    return all(loop.is_ancestor(user) for user in users_of(buffer) if not isinstance(user, (tile.RegionOp, tile.ViewOp)))


def _depends_on(value: SSAValue, variable: SSAValue) -> bool:
    """Whether a value depends on a loop's induction variable."""
    if value is variable:
        return True
    owner = value.owner
    return isinstance(owner, Operation) and not isinstance(owner, memref.LoadOp) and any(
        _depends_on(operand, variable) for operand in owner.operands)


def parts_begin_at_blocks(value: SSAValue, axis: int, parts: int) -> bool:
    """Whether each of the equal parts of a buffer along an axis begins at a block of UB (docs/hardware.md#alignment).

    Args:
        value: the buffer, or a view of it.
        axis: the axis that is divided.
        parts: the number of parts.
    """
    kind = value.type
    assert isinstance(kind, MemRefType)
    strides = kind.get_strides() or []
    stride = strides[axis] if axis < len(strides) else None
    return stride is not None and kind.get_shape()[axis] // parts * stride * dtype_of(kind.element_type).nbytes % BLOCK == 0
