"""Which part of a buffer a view has, axis by axis: two views that lie beside each other along some axis have no byte in common.

The bytes from the first to the last of a view hold much of its neighbours where it is part of each row. Where an offset or a
size is computed, a view has all along that axis that it can have.
"""

from __future__ import annotations

from xdsl.dialects import memref
from xdsl.dialects.builtin import DYNAMIC_INDEX, MemRefType
from xdsl.ir import SSAValue

Box = tuple[tuple[int, int], ...]
"""Along each axis of the buffer the first element, and the first behind the last."""


def box_of(value: SSAValue, root: SSAValue) -> Box | None:
    """The part of a buffer that a view has; None where it has all of it, or the elements of another shape."""
    views: list[memref.SubviewOp] = []
    while value is not root:
        cut = value.owner
        if not isinstance(cut, (memref.SubviewOp, memref.CastOp)):
            return None
        if isinstance(cut, memref.SubviewOp):
            views.append(cut)
        value = cut.operands[0]
    kind = root.type
    assert isinstance(kind, MemRefType)
    shape = kind.get_shape()
    if not views or DYNAMIC_INDEX in shape:
        return None
    box, starts, axes = [(0, size) for size in shape], [True] * len(shape), list(range(len(shape)))
    for view in reversed(views):
        cuts = zip(axes, view.static_offsets.get_values(), view.static_sizes.get_values(), view.static_strides.get_values(),
                   strict=True)
        for axis, offset, size, step in cuts:
            low, high = box[axis]
            starts[axis] = starts[axis] and offset != DYNAMIC_INDEX and step == 1
            if starts[axis]:
                box[axis] = low + offset, high if size == DYNAMIC_INDEX else low + offset + size
        axes = _kept(view, axes)
    return None if box == [(0, size) for size in shape] else tuple(box)


def _kept(view: memref.SubviewOp, axes: list[int]) -> list[int]:
    """The axes of the buffer that a view shows: of one that has fewer than its source those of one element are gone."""
    kind = view.result.type
    assert isinstance(kind, MemRefType)
    gone = len(axes) - len(kind.get_shape())
    kept = []
    for axis, size in zip(axes, view.static_sizes.get_values(), strict=True):
        if gone and size == 1:
            gone -= 1
        else:
            kept.append(axis)
    return kept


def apart(one: Box | None, two: Box | None) -> bool:
    """Whether two parts of one buffer have no element in common."""
    return one is not None and two is not None and any(a >= d or c >= b for (a, b), (c, d) in zip(one, two, strict=True))


__all__ = ["Box", "apart", "box_of"]
