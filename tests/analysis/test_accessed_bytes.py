"""Parts of a buffer, axis by axis: two disjoint ones have no element in common, whichever parts they are."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest
from xdsl.dialects import memref

from tilelang_npu.analysis.accessed_bytes import are_disjoint_boxes, static_box_of
from tilelang_npu.dialects.text import parse_module

SHAPE = (6, 4, 8)


def _views(cuts: list[tuple[list[int], list[int]]]) -> list[memref.SubviewOp]:
    """A chain of views with static offsets and sizes."""
    lines, of, shape, offset = [], "%b", SHAPE, 0
    layout = ""
    for number, (starts, sizes) in enumerate(cuts):
        offset += sum(start * step for start, step in zip(starts, (32, 8, 1), strict=True))
        kind = f"memref<{'x'.join(map(str, sizes))}xf32, strided<[32, 8, 1], offset: {offset}>>"
        lines.append(f"  %v{number} = memref.subview {of}{starts} {sizes} [1, 1, 1] : "
                     f"memref<{'x'.join(map(str, shape))}xf32{layout}> to {kind}")
        of, shape, layout = f"%v{number}", tuple(sizes), f", strided<[32, 8, 1], offset: {offset}>"
    text = "func.func @f(%b: memref<6x4x8xf32>) {\n" + "\n".join(lines) + "\n  return\n}"
    return [op for op in parse_module(text).walk() if isinstance(op, memref.SubviewOp)]


def _drawn(chance: random.Random, depth: int) -> tuple[list[tuple[list[int], list[int]]], np.ndarray]:
    cuts, shape, held = [], list(SHAPE), np.zeros(SHAPE, bool)
    first = [0, 0, 0]
    for _ in range(depth):
        sizes = [chance.randint(1, size) for size in shape]
        starts = [chance.randint(0, size - wanted) for size, wanted in zip(shape, sizes, strict=True)]
        cuts.append((starts, sizes))
        first = [low + start for low, start in zip(first, starts, strict=True)]
        shape = sizes
    held[tuple(slice(low, low + size) for low, size in zip(first, shape, strict=True))] = True
    return cuts, held


@pytest.mark.parametrize("seed", range(3))
def test_parts_are_disjoint_where_no_element_is_in_both(seed: int) -> None:
    chance = random.Random(seed)
    drawn = [_drawn(chance, depth) for depth in (1, 1, 2, 2, 3, 1, 2)]
    reported = []
    for cuts, held in drawn:
        views = _views(cuts)
        reported.append((static_box_of(views[-1].result, views[0].source), held))
    outcomes = set()
    for (one, first), (two, second) in itertools.combinations(reported, 2):
        assert are_disjoint_boxes(one, two) == (not (first & second).any())
        outcomes.add(are_disjoint_boxes(one, two))
    assert outcomes == {True, False}


def test_an_offset_that_is_computed_may_be_anywhere_along_its_axis() -> None:
    text = """func.func @f(%b: memref<6x8xf32>, %i: index) {
      %v = memref.subview %b[%i, 0] [1, 4] [1, 1] : memref<6x8xf32> to memref<1x4xf32, strided<[8, 1], offset: ?>>
      %w = memref.subview %b[2, 4] [1, 4] [1, 1] : memref<6x8xf32> to memref<1x4xf32, strided<[8, 1], offset: 20>>
      %x = memref.subview %b[2, 2] [1, 4] [1, 1] : memref<6x8xf32> to memref<1x4xf32, strided<[8, 1], offset: 18>>
      return
    }"""
    views = [op for op in parse_module(text).walk() if isinstance(op, memref.SubviewOp)]
    v, w, x = (static_box_of(view.result, view.source) for view in views)
    assert v == ((0, 6), (0, 4))
    assert are_disjoint_boxes(v, w)
    assert not are_disjoint_boxes(v, x)
