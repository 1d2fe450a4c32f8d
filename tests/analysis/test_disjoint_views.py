"""Views of one buffer in different iterations of a loop: those called disjoint have no element in common, whatever runs."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from xdsl.dialects import memref, scf

from tilelang_npu.analysis.disjoint_views import are_disjoint_views, overlap_only_in_same_iteration
from tilelang_npu.dialects import tile
from tilelang_npu.dialects.text import parse_module

KIND = "memref<64x64xf32, #hivm.address_space<gm>>"


def _view_type(row: str, column: str, size: tuple[int | str, int], strides: tuple[int, int] = (64, 1),
               row_stride: int = 64) -> str:
    """Returns the type of a subview; ``row_stride`` is the source's, ``strides`` are the view's."""
    offset = "?" if "%" in row + column else str(int(row) * row_stride + int(column))
    layout = f"strided<[{strides[0]}, {strides[1]}]" + (">" if offset == "0" else f", offset: {offset}>")
    return f"memref<{size[0]}x{size[1]}xf32, {layout}, #hivm.address_space<gm>>"


def _view(name: str, row: str, column: str = "0", size: tuple[int, int] = (8, 64), of: str = "%b") -> str:
    return (f"%{name} = memref.subview {of}[{row}, {column}] [{size[0]}, {size[1]}] [1, 1] : {KIND} to "
            + _view_type(row, column, size))


def _parsed(*lines: str, trips: int | str = 4, step: int = 1) -> tuple[dict[str, memref.SubviewOp], list[scf.ForOp]]:
    """Returns the views of a loop's body by name, and the loops."""
    module = parse_module(f"""func.func @k(%b: {KIND}, %other: {KIND}, %n: index, %p: i1) {{
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c2 = arith.constant 2 : index
      %c4 = arith.constant 4 : index
      %c8 = arith.constant 8 : index
      %step = arith.constant {step} : index
      %trips = arith.constant {trips} : index
      scf.for %t = %c0 to %trips step %step {{
        {chr(10).join(lines)}
      }}
      return
    }}""")
    views = {op.result.name_hint or "": op for op in module.walk() if isinstance(op, memref.SubviewOp)}
    return views, [op for op in module.walk() if isinstance(op, scf.ForOp)]


def _disjoint(*lines: str, later: bool, trips: int = 4, step: int = 1) -> bool:
    views, (loop, *_) = _parsed(*lines, trips=trips, step=step)
    return are_disjoint_views(views["u"].result, views["v"].result, loop, later=later)


def _overlap(row: int, size: int, other: int, other_size: int) -> bool:
    return row < other + other_size and other < row + size


@pytest.mark.parametrize(("step", "size", "later"), list(product([1, 2], [4, 8, 9, 16, 17], [False, True])))
@pytest.mark.parametrize("shift", [-16, -8, -1, 0, 8, 16])
def test_rows_that_follow_the_induction_variable(step: int, size: int, later: bool, shift: int) -> None:
    """Rows from 8 t and from 8 t + shift on, for iterations t of a long loop: the result is that of testing all pairs of
    iterations."""
    found = _disjoint("%s = arith.muli %t, %c8 : index", f"%more = arith.constant {shift} : index",
                      "%r = arith.addi %s, %more : index",
                      _view("u", "%s", size=(size, 64)), _view("v", "%r", size=(size, 64)), later=later, step=step, trips=40)
    pairs = [(s, t) for s in range(0, 40, step) for t in range(0, 40, step) if (s < t if later else s == t)]
    so = not any(_overlap(8 * s, size, 8 * t + shift, size) for s, t in pairs)
    if found:
        assert so
    if shift >= 0 or not later:  # otherwise only iterations far apart are disjoint
        assert found is so


def test_backwards_the_later_view_ends_before_the_earlier_one() -> None:
    lines = ["%s = arith.muli %t, %c8 : index", "%r = arith.subi %n, %s : index"]
    for size, disjoint in ((8, True), (9, False)):
        assert _disjoint(*lines, _view("u", "%r", size=(size, 64)), _view("v", "%r", size=(size, 64)), later=True) is disjoint
    assert not _disjoint(*lines, _view("u", "%r"), _view("v", "%s"), later=True)  # in opposite directions
    ahead = [*lines, "%more = arith.constant 24 : index", "%a = arith.addi %r, %more : index",
             _view("u", "%r"), _view("v", "%a")]
    assert _disjoint(*ahead, later=False)
    assert not _disjoint(*ahead, later=True)  # three iterations later, v starts where u did


def test_the_columns_decide_where_the_rows_are_the_same() -> None:
    for column, disjoint in (("32", True), ("31", False)):
        lines = [_view("u", "0", "0", (8, 32)), _view("v", "0", column, (8, 32))]
        for later in (False, True):
            assert _disjoint(*lines, later=later) is disjoint


def test_views_of_different_or_unknown_sources_are_not_called_disjoint() -> None:
    views, (loop,) = _parsed(_view("u", "0"), _view("v", "8"), _view("w", "8", of="%other"))
    u, v, w = (views[name].result for name in "uvw")
    assert are_disjoint_views(u, v, loop, later=False)
    assert not are_disjoint_views(u, w, loop, later=False)
    assert not are_disjoint_views(None, v, loop, later=False)
    assert not are_disjoint_views(u, None, loop, later=False)
    assert not are_disjoint_views(u, views["v"].source, loop, later=False)  # no subview
    assert are_disjoint_views(u, v, None, later=False)


@pytest.mark.parametrize(("offset", "disjoint"), [("%n", True), ("%t", False)])
def test_a_source_that_changes_between_iterations_is_another_source(offset: str, disjoint: bool) -> None:
    """Rows 0 to 7 and rows 8 to 15 from an offset on, which is the same in all iterations or not."""
    cast = "memref<16x64xf32, strided<[64, 1], offset: ?>, #hivm.address_space<gm>>"
    lines = [f"%x = memref.reinterpret_cast %b to offset: [{offset}], sizes: [16, 64], strides: [64, 1] : {KIND} to {cast}"]
    lines += [f"%{name} = memref.subview %x[{row}, 0] [8, 64] [1, 1] : {cast} to {_view_type('%', '0', (8, 64))}"
              for name, row in (("u", 0), ("v", 8))]
    assert _disjoint(*lines, later=True) is disjoint
    assert _disjoint(*lines, later=False)


@pytest.mark.parametrize(("row", "later", "disjoint"), [("%r", False, True), ("%r", True, True), ("%s", True, True),
                                                        ("%s", False, False), ("%c4", False, False), ("%c4", True, False)])
def test_regions_of_tiles_are_views(row: str, later: bool, disjoint: bool) -> None:
    """Iteration t accesses 8 rows from row 8 t on, and 8 rows from 8 t, 8 t + 8 or 4 on."""
    part = "memref<8x64xf32, strided<[64, 1], offset: ?>, #hivm.address_space<gm>>"
    module = parse_module(f"""func.func @k(%b: {KIND}) {{
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c4 = arith.constant 4 : index
      %c8 = arith.constant 8 : index
      scf.for %t = %c0 to %c4 step %c1 {{
        %s = arith.muli %t, %c8 : index
        %r = arith.addi %s, %c8 : index
        %u = tile.region %b[%s, 0] [8, 64] keep [0, 1] : {KIND} to {part}
        %v = tile.region %b[{row}, 0] [8, 64] keep [0, 1] : {KIND} to {part}
      }}
      return
    }}""")
    u, v = (op.result for op in module.walk() if isinstance(op, tile.RegionOp))
    (loop,) = (op for op in module.walk() if isinstance(op, scf.ForOp))
    assert are_disjoint_views(u, v, loop, later=later) is disjoint


def test_a_view_with_steps_is_not_called_disjoint() -> None:
    kind = _view_type("8", "0", (4, 64), strides=(128, 1))
    views, (loop,) = _parsed(_view("u", "0", size=(4, 64)), f"%v = memref.subview %b[8, 0] [4, 64] [2, 1] : {KIND} to {kind}")
    assert not are_disjoint_views(views["u"].result, views["v"].result, loop, later=False)


@pytest.mark.parametrize(("row_stride", "disjoint"), [(64, True), (80, True), (63, False), (32, False)])
def test_rows_of_a_reinterpreted_source_may_overlap_by_its_strides(row_stride: int, disjoint: bool) -> None:
    cast = f"memref<16x64xf32, strided<[{row_stride}, 1]>, #hivm.address_space<gm>>"
    lines = [f"%x = memref.reinterpret_cast %b to offset: [0], sizes: [16, 64], strides: [{row_stride}, 1] : {KIND} to {cast}"]
    lines += [f"%{name} = memref.subview %x[{row}, 0] [8, 64] [1, 1] : {cast} to "
              + _view_type(row, "0", (8, 64), (row_stride, 1), row_stride) for name, row in (("u", "0"), ("v", "8"))]
    assert _disjoint(*lines, later=False) is disjoint


@pytest.mark.parametrize(("bound", "disjoint"), [(True, True), (False, False)])
def test_a_size_of_run_time_counts_with_its_bound(bound: bool, disjoint: bool) -> None:
    kind = _view_type("%s", "0", ("?", 64))
    size = "%size = arith.minsi %n, %c8 : index" if bound else "%size = arith.addi %n, %c0 : index"
    lines = ["%s = arith.muli %t, %c8 : index", size]
    lines += [f"%{name} = memref.subview %b[%s, 0] [%size, 64] [1, 1] : {KIND} to {kind}" for name in "uv"]
    assert _disjoint(*lines, later=True) is disjoint
    assert not _disjoint(*lines, later=False)


@pytest.mark.parametrize(("factor", "reach", "disjoint"), [(16, 8, True), (16, 9, False), (8, 1, False)])
def test_a_part_of_the_start_that_varies_counts_with_its_bounds(factor: int, reach: int, disjoint: bool) -> None:
    """Eight rows from ``factor * t + i`` on, for i of an inner loop of ``reach`` + 1 iterations."""
    views, (loop, _) = _parsed(
        f"%factor = arith.constant {factor} : index", "%s = arith.muli %t, %factor : index",
        f"%reach = arith.constant {reach + 1} : index", "scf.for %i = %c0 to %reach step %c1 {",
        "%r = arith.addi %s, %i : index", _view("u", "%r"), "}")
    u = views["u"].result
    assert are_disjoint_views(u, u, loop, later=True) is disjoint
    rows = [np.arange(8) + factor * t + i for t, i in ((0, reach), (1, 0))]
    assert disjoint is (not set(rows[0]) & set(rows[1]))


@pytest.mark.parametrize(("guarded", "disjoint"), [(True, True), (False, False)])
def test_a_minimum_counts_as_its_operand_where_a_branch_implies_so(guarded: bool, disjoint: bool) -> None:
    """The next 8 rows, read ahead but at most from row 8 (n - 1) on, while this iteration's 8 rows are written."""
    inner = ["%last = arith.subi %n, %c1 : index", "%m = arith.minsi %next, %last : index", "%r = arith.muli %m, %c8 : index",
             _view("v", "%r")]
    lines = ["%s = arith.muli %t, %c8 : index", _view("u", "%s"), "%next = arith.addi %t, %c1 : index"]
    if guarded:
        lines += ["%in = arith.cmpi slt, %next, %n : index", "scf.if %in {", *inner, "}"]
    else:
        lines += inner
    assert _disjoint(*lines, later=False) is disjoint


@pytest.mark.parametrize(("rows", "columns", "scale", "disjoint"), [
    (16, 16, 16, True), (16, 16, 8, False), (17, 16, 16, False), (16, 17, 16, False)])
def test_tiles_of_a_grid_are_disjoint_if_they_are_no_larger_than_its_cells(rows: int, columns: int, scale: int,
                                                                         disjoint: bool) -> None:
    """The tile at row ``t // 4 * scale`` and column ``t % 4 * scale``."""
    lines = ["%q = arith.divui %t, %c4 : index", "%m = arith.remui %t, %c4 : index",
             f"%scale = arith.constant {scale} : index", "%r = arith.muli %q, %scale : index",
             "%c = arith.muli %m, %scale : index", *(_view(name, "%r", "%c", (rows, columns)) for name in "uv")]
    assert _disjoint(*lines, later=True, trips=16) is disjoint
    places = [(t // 4 * scale, t % 4 * scale) for t in range(16)]
    assert disjoint is not any(_overlap(a, rows, c, rows) and _overlap(b, columns, d, columns)
                               for number, (a, b) in enumerate(places) for c, d in places[number + 1:])


@pytest.mark.parametrize(("divisor", "number"), [("%c2", "%t"), ("%c4", "%same"), ("%c4", "%n")])
def test_tiles_whose_row_and_column_are_not_of_one_number_that_differs_may_overlap(divisor: str, number: str) -> None:
    """The divisors of the row and of the column differ, or the number is the same in all iterations."""
    lines = ["%zero = arith.muli %t, %c0 : index", "%same = arith.addi %n, %zero : index",
             f"%q = arith.divui {number}, {divisor} : index", f"%m = arith.remui {number}, %c4 : index",
             "%r = arith.muli %q, %c8 : index", "%c = arith.muli %m, %c8 : index",
             _view("u", "%r", "%c", (8, 8)), _view("v", "%r", "%c", (8, 8))]
    assert not _disjoint(*lines, later=True, trips=8)


OUTER = """
  %start = arith.muli %t, %c1 : index
  scf.for %i = {low} to %c8 step %c1 {{
    %s = arith.muli %i, %c8 : index
    %o = arith.addi %s, {add} : index
    {view}
  }}
"""


@pytest.mark.parametrize(("low", "add", "size", "only"), [
    ("%c0", "%c0", 8, True), ("%c0", "%c0", 9, False),
    ("%c0", "%start", 8, False),  # rows 8 i + t: those of i + 1 and of i in another outer iteration
    ("%t", "%c0", 8, False),  # the same i has different values in two iterations
    ("%c0", "%n", 8, True)])
def test_rows_of_an_inner_loop_in_two_iterations_of_the_outer_one(low: str, add: str, size: int, only: bool) -> None:
    views, (outer, inner) = _parsed(OUTER.format(low=low, add=add, view=_view("u", "%o", size=(size, 64))))
    u = views["u"].result
    assert overlap_only_in_same_iteration(u, u, inner, outer) is only
    assert not overlap_only_in_same_iteration(u, None, inner, outer)


def test_two_views_of_an_inner_loop_overlap_in_other_iterations_if_one_is_ahead() -> None:
    views, (outer, inner) = _parsed("scf.for %i = %c0 to %c8 step %c1 {", "%s = arith.muli %i, %c8 : index",
                                    "%r = arith.addi %s, %c8 : index", _view("u", "%s"), _view("v", "%r"), "}")
    u, v = views["u"].result, views["v"].result
    assert overlap_only_in_same_iteration(u, u, inner, outer)
    assert not overlap_only_in_same_iteration(u, v, inner, outer)  # v of iteration i is u of iteration i + 1
    assert are_disjoint_views(u, v, inner, later=True)
    assert not are_disjoint_views(v, u, inner, later=True)
