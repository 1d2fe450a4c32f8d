"""Leaves the padding of tiles at the end of a tensor out of reductions (``TL_ASCEND_TAIL_MASK``).

A load of a tile that reaches past the end of its tensor pads the tile with zeros. A maximum of negative elements, for example,
would then be 0. The pass follows tiles from such a load through elementwise operations and copies of whole buffers, and cuts
the source of a reduction to the elements that the tensor has along the reduced axes; to one element where it has none.

The tiles are followed through the statements of one block and the loops and branches in it. What a loop or a branch has written
is not followed after it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass

from tilelang_npu.analysis.accesses import accesses_within
from tilelang_npu.analysis.buffers import root_of, space_of
from tilelang_npu.analysis.ranges import Ranges
from tilelang_npu.dialects import tile
from tilelang_npu.dialects.ir.effects import effects_of
from tilelang_npu.dialects.ir.remarks import record_done
from tilelang_npu.dialects.text import location_of
from tilelang_npu.target import GM
from tilelang_npu.transforms.infra.op_builder import OpBuilder, Value

Valid = tuple[Value, ...]
"""The number of elements along each axis of a buffer that are not padding."""


class TailMasks:
    """Cuts the reductions of one function.

    Args:
        module: the module, to which remarks are added.
        function: the function.
    """

    def __init__(self, module: ModuleOp, function: func.FuncOp) -> None:
        self.module = module
        self.emit = OpBuilder(function.body.block, Ranges())

    def walk(self, block: Block, valid: dict[SSAValue, Valid]) -> None:
        """Walks a block and cuts its reductions.

        Args:
            block: the block.
            valid: the buffers with padding before the block; those after the block when the method returns.
        """
        for op in list(block.ops):
            written = [root_of(use.value) for use in accesses_within(op) if use.writes]
            if op.regions:
                for buffer in written:
                    valid.pop(buffer, None)
                for region in op.regions:
                    for inner in region.blocks:
                        self.walk(inner, dict(valid))
                continue
            if isinstance(op, tile.ReduceOp) and op.source in valid:
                self._cut(op, valid[op.source])
            found = self._valid_after(op, valid)
            for buffer in written:
                valid.pop(buffer, None)
            if found is not None:
                valid[op.operands[_target_of(op)]] = found

    def _valid_after(self, op: Operation, valid: dict[SSAValue, Valid]) -> Valid | None:
        """Returns which elements of an operation's destination are not padding; None if all, or if the pass does not know."""
        if isinstance(op, tile.CopyOp) and space_of(root_of(op.source)) == GM:
            return self._loaded(op)
        if isinstance(op, tile.CopyOp):
            plain = op.transpose is None and op.halves is None and _is_whole_tile(op.target)
            return valid.get(op.source) if plain else None
        if isinstance(op, tile.ElementwiseOp) and _is_whole_tile(op.target):
            shape = tile.shape_of(op.target)
            read = [*op.inputs, op.target] if op.reads_destination(op.target) else op.inputs
            inputs = [valid[value] for value in read if value in valid and tile.shape_of(value) == shape]
            if inputs:
                with self.emit.before(op):
                    return tuple(self._least(sizes) for sizes in zip(*inputs, strict=True))
        return None

    def _loaded(self, op: tile.CopyOp) -> Valid | None:
        """Returns which elements of a buffer a load from GM writes with elements of the tensor; None if surely all."""
        region, shape = op.source.owner, tile.shape_of(op.target)
        if not isinstance(region, tile.RegionOp) or not _is_whole_tile(op.target) or op.pad is not None:
            return None
        kept = region.kept.get_values()
        if len(kept) != len(shape) or op.transpose is not None:
            return None
        bounds, sizes = _sizes_of(region.source), region.mixed_sizes()
        valid: list[Value] = []
        with self.emit.before(op):
            for axis in kept:
                start, size, bound = region.mixed_offsets()[axis], sizes[axis], bounds[axis]
                inside = (isinstance(bound, int) and (ends := self.emit.ranges.of(start)).low >= 0
                          and ends.high + self.emit.ranges.of(size).high <= bound)
                valid.append(size if inside else self.emit.maximum(self.emit.minimum(self.emit.sub(bound, start), size), 1))
        return None if all(size == whole for size, whole in zip(valid, shape, strict=True)) else tuple(valid)

    def _least(self, sizes: Sequence[Value]) -> Value:
        least = sizes[0]
        for size in sizes[1:]:
            least = least if size is least else self.emit.minimum(least, size)
        return least

    def _cut(self, op: tile.ReduceOp, valid: Valid) -> None:
        """Cuts the source of a reduction along the reduced axes."""
        shape, dims = tile.shape_of(op.source), op.dims.get_values()
        sizes = [valid[axis] if axis in dims else size for axis, size in enumerate(shape)]
        if all(size == whole for size, whole in zip(sizes, shape, strict=True)):
            return
        with self.emit.before(op):
            op.operands[0] = self.emit.insert(tile.RegionOp(op.source, [0] * len(shape), sizes)).result
        record_done(self.module, MaskTails.name, location_of(op),
                    f"{op.entry().name} leaves out the padding of tiles at the end of the tensor")


def _target_of(op: Operation) -> int:
    return next(use.index for use in effects_of(op) if use.writes)


def _is_whole_tile(value: SSAValue) -> bool:
    """Whether a value is a whole buffer of constant shape outside of GM, whose bytes no other buffer has.

    Buffers with an address of the author's choice may share bytes.
    """
    return (isinstance(value.owner, tile.AllocOp) and value.owner.address is None and space_of(value) != GM
            and min(tile.shape_of(value), default=0) >= 0)


def _sizes_of(tensor: SSAValue) -> Sequence[Value]:
    """Returns the size of each axis of a tensor: an integer if the size is a constant."""
    owner = tensor.owner
    if isinstance(owner, tile.TensorOp | tile.StridedTensorOp):
        return owner.mixed_sizes()
    return tile.shape_of(tensor)


@dataclass(frozen=True)
class MaskTails(ModulePass):
    """Leaves the padding of tiles at the end of a tensor out of reductions.

    Attributes:
        mask_tails: whether the kernel's author has asked for it.
    """

    name = "mask-tails"
    mask_tails: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if not self.mask_tails:
            return
        for function in op.ops:
            if isinstance(function, func.FuncOp) and function.body.blocks:
                TailMasks(op, function).walk(function.body.block, {})


__all__ = ["MaskTails", "TailMasks"]
