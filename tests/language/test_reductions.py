"""Reductions: axes, destinations, real sizes and accumulation, in both dialects' spellings."""

from __future__ import annotations

from typing import Any

import pytest

from tilelang_npu import TileError


@pytest.mark.parametrize(("statement", "expected"), [
    ("T.reduce_sum(a, col)", ['tile.reduce "reduce_sum" ins(%a']),
    ("T.reduce_max(a, eight, dim=-1)", ["%0 = tile.view %eight", 'tile.reduce "reduce_max" ins(%a']),
    ("T.reduce_min(a, row, 0)", ['tile.reduce "reduce_min" ins(%a']),
    ("T.reduce_min(a, line, 0)", ["%0 = tile.view %line", 'tile.reduce "reduce_min" ins(%a']),
    ("T.reduce_sum(flat, one, dim=0)", ['tile.reduce "reduce_sum" ins(%flat']),
    ("T.reduce_sum(a, col, dim=1, clear=False)", ['tile.reduce "reduce_sum" accumulate ins(%a']),
    ("T.reduce_sum(a, col, -1, False)", ['tile.reduce "reduce_sum" accumulate ins(%a']),
    ("T.reduce_sum(stack[1, :, :], col)", ["%0 = tile.region %stack[1, 0, 0] [1, 8, 128] keep [1, 2]",
                                           'tile.reduce "reduce_sum" ins(%0']),
    ("T.reduce_sum(a, stack[0, :, 0:1])", ["%0 = tile.region %stack[0, 0, 0] [1, 8, 1] keep [1, 2]",
                                           'tile.reduce "reduce_sum" ins(%a']),
    ("T.reduce_sum(stack[0:1, :, :], row, dim=0)", ["%0 = tile.region %row", "%1 = tile.view %0", "%2 = tile.region %stack",
                                                         'tile.reduce "reduce_sum" ins(%2']),
    ("T.reduce(stack, one, [0, 1, 2], 'sum')", ["%0 = tile.view %one", 'tile.reduce "reduce_sum" ins(%stack']),
    ("T.reduce(a, col, -1, 'max', clear=False)", ['tile.reduce "reduce_max" accumulate ins(%a']),
    ("T.npuir_reduce(a, col, [1], 'min')", ['tile.reduce "reduce_min" ins(%a']),
    ("T.reduce_absmax(a, col)", ['tile.reduce "reduce_max" absolute ins(%a']),
    ("T.reduce(a, col, 1, 'abssum')", ['tile.reduce "reduce_sum" absolute ins(%a']),
    # real sizes
    ("T.reduce_sum(a, col, -1, [8, 100])", ["%0 = tile.region %a[0, 0] [8, 100] keep [0, 1]",
                                            'tile.reduce "reduce_sum" ins(%0']),
    ("T.reduce_max(a, eight, real_shape=[0, 100])", ["%0 = tile.view %eight", "%1 = tile.region %a[0, 0] [8, 100] keep [0, 1]",
                                                     'tile.reduce "reduce_max" ins(%1']),
    ("T.reduce_max(a, col, size=[4, 100])", ["%0 = tile.region %col[0, 0] [4, 1] keep [0, 1]",
                                             "%1 = tile.region %a[0, 0] [4, 100] keep [0, 1]",
                                             'tile.reduce "reduce_max" ins(%1']),
    ("T.reduce_sum(a, line, 0, real_shape=[0, 100])", ["%0 = tile.region %line[0] [100] keep [0]", "%1 = tile.view %0",
                                                       "%2 = tile.region %a[0, 0] [8, 100] keep [0, 1]",
                                                       'tile.reduce "reduce_sum" ins(%2']),
    ("T.reduce_sum(a, col, real_shape=[8, n])", ["%0 = arith.index_cast %n", "%1 = tile.region %a[0, 0] [8, %0] keep [0, 1]",
                                                 'tile.reduce "reduce_sum" ins(%1']),
])
def test_forms(lines: Any, statement: str, expected: list[str]) -> None:
    found = lines(statement)
    assert len(found) == len(expected), found
    for have, want in zip(found, expected, strict=True):
        assert have.startswith(want), found


def test_dimensions(kernel: Any) -> None:
    made = kernel("T.reduce(stack, one, [-1, 0, 1], 'sum')").only("tile.reduce")
    assert list(made.dims.get_values()) == [0, 1, 2]


@pytest.mark.parametrize(("statement", "code", "message"), [
    ("T.reduce_sum(i, col)", "T110", "no reduction of int32 into float32"),
    ("T.reduce_sum(a, row)", "T111", r"destination has shape \[1, 128\], the result \[8, 1\]"),
    ("T.reduce_sum(a, T.alloc_ub((128, 1), 'float32'), 0)", "T111", r"destination has shape \[128, 1\], the result \[1, 128\]"),
    ("T.reduce_sum(a, a)", "T112", "shares elements with the input"),
    ("T.reduce(a, col, -1, 'mean')", "T145", "there is no reduction 'mean'"),
    ("T.reduce_sum(a, col, [1, 1])", "T111", r"axes \[1, 1\] are empty, or name an axis twice"),
    ("T.reduce_sum(a, col, -3)", "T111", "axis -3 of a .*: valid are -2 to 1"),
    ("T.reduce_sum(a, col, real_shape=[8])", "T111", "1 real sizes for a"),
    ("T.reduce_sum(a, col, real_shape=[8, 200])", "T111", "real size 200 of an axis with 128 elements"),
    ("T.reduce_sum(stack, a, dim=0)", "T111", r"stack \[2, 8, 128\] float32 holds 2 matrices"),
    ("T.reduce_sum(a, 3)", "T110", "the destination must be a buffer, not 3"),
])
def test_contracts(kernel: Any, refused: Any, statement: str, code: str, message: str) -> None:
    with refused(code, at=statement, message=message):
        kernel(statement)


@pytest.mark.parametrize(("statement", "code"), [
    ("T.reduce(u, T.alloc_ub((8, 1), 'uint8'), 1, 'sum', clear=False)", "T110"),
    ("T.reduce(a, col, 1, 'none')", "T145"), ("T.reduce(a, col, 1, 'xori')", "T110"), ("T.reduce(a, col, 1, 'mean')", "T145"),
    ("T.reduce(a, col, 1, 'max_with_index_left')", "T145"), ("T.reduce(a, (col, col), 1, 'max_with_index_left')", "T110"),
    ("T.reduce(a, (row, row), [0, 1], 'max_with_index_left')", "T111"),
    ("T.reduce(a, (row, T.alloc_ub((8, 1), 'int32')), 1, 'min_with_index_right')", "T111"),
    ("T.reduce(a, (col, T.alloc_ub((8, 1), 'int32')), 1, 'min_with_index_right', clear=False)", "T145"),
])
def test_modes_that_are_refused(kernel: Any, statement: str, code: str) -> None:
    with pytest.raises(TileError) as caught:
        kernel(statement, "npuir")
    assert caught.value.code == code
