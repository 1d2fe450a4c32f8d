"""The rules of the ops of memref that see a buffer in another shape: its place, elements and memory space stay."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from xdsl.dialects import memref
from xdsl.dialects.builtin import DYNAMIC_INDEX, MemRefType, NoneAttr, UnrankedMemRefType

from tilelang_npu.dialects.ir.declaration import OfClass, replace_rules
from tilelang_npu.dialects.mlir.rules import (
    Size,
    drops_ones,
    groups_of,
    is_row_by_row,
    offset_of_slice,
    output_shape,
    regrouped,
    require,
    same_memref,
    slice_of,
    strided,
    times,
    unless_dynamic,
    with_layout,
)

__all__ = ["VIEWS"]

_BUFFER = OfClass((MemRefType, UnrankedMemRefType), "ranked or unranked memref of any type values")


def _cut(op: Any) -> None:
    source, result = op.source.type, op.result.type
    sizes = slice_of(op, source.get_shape())
    require(source.memory_space == result.memory_space,
            f"different memory spaces specified for base memref type '{source}' and subview memref type '{result}'")
    of_source, of_result = strided(source), strided(result)
    if of_source is None or of_result is None:
        require(of_source is not None, f"base type '{source}' is not strided")
        require(of_result is not None, f"expected result type to have strided layout but found '{result}'")
        return
    starts, steps = ([unless_dynamic(number) for number in static.get_values()]
                     for static in (op.static_offsets, op.static_strides))
    offset = offset_of_slice(source, starts)
    strides = [times(stride, step) for stride, step in zip(of_source[0], steps, strict=True)]
    expected = with_layout(source, sizes, strides, offset)
    said = f"expected result type to be '{expected}' or a rank-reduced version"
    require(result.get_num_dims() <= len(sizes),
            f"expected result rank to be smaller or equal to the source rank, but got '{result}'")
    require(drops_ones(sizes, result.get_shape()), f"{said} (mismatch of result sizes), but got '{result}'")
    require(source.element_type == result.element_type,
            f"expected result element type to be '{source.element_type}', but got '{result}'")
    kept = _kept(sizes, strides, of_result[0])
    fits = of_result[1] == offset and kept is not None and [strides[axis] for axis in kept] == of_result[0]
    require(fits, f"{said} (mismatch of result layout), but got '{result}'")


def _kept(sizes: Sequence[int], strides: Sequence[Size], left: Sequence[Size]) -> list[int] | None:
    """The axes that a result of fewer still has, told by size 1 and by the strides that are gone; None if that tells not."""
    if len(left) == len(sizes):
        return list(range(len(sizes)))
    ones = [axis for axis, size in enumerate(sizes) if size == 1]
    if len(sizes) - len(ones) != len(left):
        had, has = Counter(strides), Counter(left)
        dropped = []
        for axis in ones:
            if had[strides[axis]] > has[strides[axis]]:
                had[strides[axis]] -= 1
                dropped.append(axis)
            elif had[strides[axis]] < has[strides[axis]]:
                return None
        ones = dropped
    kept = [axis for axis in range(len(sizes)) if axis not in ones]
    return kept if len(kept) == len(left) else None


def _collapses(op: Any) -> None:
    source, result, groups = op.src.type, op.result.type, groups_of(op.reassociation)
    ranks = source.get_num_dims(), result.get_num_dims()
    require(ranks[0] >= ranks[1], f"has source rank {ranks[0]} and result rank {ranks[1]}. This is not a collapse"
                                  f" ({ranks[0]} < {ranks[1]}).")
    regrouped(result.get_shape(), source.get_shape(), groups)
    if is_row_by_row(source):
        expected = MemRefType(source.element_type, result.shape, NoneAttr(), source.memory_space)
    else:
        layout = strided(source)
        strides = None if layout is None else _joined(source.get_shape(), layout[0], groups)
        if layout is None or strides is None:
            require(False, "invalid source layout map or collapsing non-contiguous dims")
            return
        stated = strided(result)
        if stated is not None and len(stated[0]) == len(strides):
            # AscendNPU-IR's passes state the strides that only an axis of open size, which might be 1, hides from MLIR
            strides = [here if stride is None else stride for stride, here in zip(strides, stated[0], strict=True)]
        expected = with_layout(source, result.get_shape(), strides, layout[1])
    require(same_memref(expected, result), f"expected collapsed type to be '{expected}' but found '{result}'")


def _joined(shape: Sequence[int], strides: Sequence[Size], groups: Sequence[Sequence[int]]) -> list[Size] | None:
    """The strides of groups of axes, of which each is that of its last axis; None where a group is seen to have gaps."""
    joined: list[Size] = []
    for group in groups:
        axes = list(group)
        while len(axes) > 1 and shape[axes[-1]] == 1:
            axes.pop()
        # an axis of open size may have size 1, and then its stride says nothing
        joined.append(strides[axes[-1]] if len(axes) == 1 or shape[axes[-1]] != DYNAMIC_INDEX else None)
    for group, last in zip(groups, joined, strict=True):
        stride = last
        for axis in reversed(group[1:]):
            stride = times(stride, unless_dynamic(shape[axis]))
            here = strides[axis - 1]
            if shape[axis - 1] != 1 and None not in (stride, here) and stride != here:
                return None
    return joined


def _expands(op: Any) -> None:
    source, result, groups = op.src.type, op.result.type, groups_of(op.reassociation)
    ranks = source.get_num_dims(), result.get_num_dims()
    require(ranks[0] <= ranks[1], f"has source rank {ranks[0]} and result rank {ranks[1]}. This is not an expansion"
                                  f" ({ranks[0]} > {ranks[1]}).")
    regrouped(source.get_shape(), result.get_shape(), groups)
    if is_row_by_row(source):
        expected = MemRefType(source.element_type, result.shape, NoneAttr(), source.memory_space)
    else:
        layout = strided(source)
        if layout is None:
            require(False, "invalid source layout map")
            return
        strides: list[Size] = [1] * len(result.get_shape())
        for group, stride in zip(groups, layout[0], strict=True):
            for axis in reversed(group):
                strides[axis] = stride
                stride = times(stride, unless_dynamic(result.get_shape()[axis]))
        expected = with_layout(source, result.get_shape(), strides, layout[1])
    require(same_memref(expected, result), f"expected expanded type to be '{expected}' but found '{result}'")
    output_shape(op, op.output_shape, result.get_shape())


def _castable(op: Any) -> None:
    source, result = op.source.type, op.dest.type
    fits = source.element_type == result.element_type and source.memory_space == result.memory_space
    if isinstance(source, MemRefType) and isinstance(result, MemRefType):
        fits = fits and drops_nothing(source, result)
    else:
        fits = fits and (isinstance(source, MemRefType) or isinstance(result, MemRefType))
    require(fits, f"operand type '{source}' and result type '{result}' are cast incompatible")


def drops_nothing(source: MemRefType[Any], result: MemRefType[Any]) -> bool:
    """Whether two types may describe the same elements: what both state of sizes, strides and offset is equal."""
    shapes = source.get_shape(), result.get_shape()
    if len(shapes[0]) != len(shapes[1]):
        return False
    if any(one != other and DYNAMIC_INDEX not in (one, other) for one, other in zip(*shapes, strict=True)):
        return False
    if source.layout == result.layout:
        return True
    layouts = strided(source), strided(result)
    if layouts[0] is None or layouts[1] is None:
        return False
    return all(None in (one, other) or one == other
               for one, other in zip((*layouts[0][0], layouts[0][1]), (*layouts[1][0], layouts[1][1]), strict=True))


def _moves_space(op: Any) -> None:
    source, result = op.source.type, op.dest.type
    fits = source.element_type == result.element_type and type(source) is type(result)
    if fits and isinstance(source, MemRefType):
        fits = source.shape == result.shape and source.layout == result.layout
    require(fits, f"operand type '{source}' and result type '{result}' are cast incompatible")


def _takes_apart(op: Any) -> None:
    source = op.source.type
    base = MemRefType(source.element_type, [], NoneAttr(), source.memory_space)
    rank = source.get_num_dims()
    fits = op.base_buffer.type == base and len(op.sizes) == len(op.strides) == rank
    require(fits, f"inferred type(s) '{base}' and {1 + 2 * rank} of 'index' are incompatible with return type(s) of operation")


VIEWS = (
    replace_rules(memref.SubviewOp, _cut), replace_rules(memref.CollapseShapeOp, _collapses), replace_rules(memref.ExpandShapeOp, _expands),
    replace_rules(memref.CastOp, _castable, source=_BUFFER, dest=_BUFFER),
    replace_rules(memref.MemorySpaceCastOp, _moves_space, source=_BUFFER, dest=_BUFFER),
    replace_rules(memref.ExtractStridedMetaDataOp, _takes_apart))
"""The ops of xDSL with the rules of MLIR."""
