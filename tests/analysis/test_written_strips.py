"""The part of a buffer that writes have filled, against the elements of a NumPy array."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects import scf
from xdsl.ir import SSAValue

from tilelang_npu.analysis.ranges import Ranges
from tilelang_npu.analysis.written_strips import WrittenStrips
from tilelang_npu.dialects import tile
from tilelang_npu.dialects.text import parse_module

ROWS, COLUMNS = 8, 6
Box = tuple[int, int, int, int]  # first row, first column, rows, columns


def _regions(boxes: list[Box]) -> tuple[SSAValue, list[SSAValue]]:
    """Returns a buffer of 8 x 6 elements and regions of it."""
    lines = "\n".join(
        f"%r{number} = tile.region %x[{row}, {column}] [{rows}, {columns}] keep [0, 1] : memref<8x6xf32, "
        f"#hivm.address_space<ub>> to memref<{rows}x{columns}xf32, strided<[6, 1], offset: {6 * row + column}>, "
        "#hivm.address_space<ub>>" for number, (row, column, rows, columns) in enumerate(boxes))
    module = parse_module(f"""func.func @k() {{
      %x = tile.alloc "x" : memref<8x6xf32, #hivm.address_space<ub>>
      {lines}
      return
    }}""")
    values = [op.results[0] for op in module.walk() if isinstance(op, (tile.AllocOp, tile.RegionOp))]
    return values[0], values[1:]


def _random_box(rng: np.random.Generator, strips_only: bool) -> Box:
    row, column = rng.integers(ROWS), rng.integers(COLUMNS)
    rows, columns = rng.integers(1, ROWS - row + 1), rng.integers(1, COLUMNS - column + 1)
    if strips_only:
        if rng.integers(2):
            row, rows = 0, ROWS
        else:
            column, columns = 0, COLUMNS
    return int(row), int(column), int(rows), int(columns)


@pytest.mark.parametrize("seed", range(40))
def test_what_is_called_written_is_written(seed: int) -> None:
    """Random writes: no region with an unwritten element is covered, and rows that only whole rows fill are found."""
    rng = np.random.default_rng(seed)
    boxes = [_random_box(rng, strips_only=seed % 2 == 0) for _ in range(12)]
    asked = [(row, 0, rows, COLUMNS) for row in range(ROWS) for rows in range(1, ROWS - row + 1)] + [
        _random_box(rng, strips_only=False) for _ in range(20)]
    buffer, views = _regions(boxes + asked)
    written, elements, whole_rows = WrittenStrips(buffer, Ranges()), np.zeros((ROWS, COLUMNS), bool), np.zeros(ROWS, bool)
    for at, (row, column, rows, columns) in enumerate(boxes):
        written.add(views[at])
        elements[row:row + rows, column:column + columns] = True
        if columns == COLUMNS:
            whole_rows[row:row + rows] = True
        assert not written.is_complete or elements.all()
        assert written.is_complete or not whole_rows.all()
        for (top, left, height, width), view in zip(asked, views[len(boxes):], strict=True):
            covered = written.covers(view)
            assert not covered or elements[top:top + height, left:left + width].all()
            assert covered or width != COLUMNS or not whole_rows[top:top + height].all()


@pytest.mark.parametrize(("boxes", "complete"), [
    ([(0, 0, 8, 6)], True), ([(0, 0, 4, 6), (4, 0, 4, 6)], True), ([(5, 0, 3, 6), (0, 0, 6, 6)], True),
    ([(0, 0, 8, 2), (0, 2, 8, 4)], True),
    ([(0, 0, 4, 6), (5, 0, 3, 6)], False),  # row 4 is missing
    ([(0, 0, 8, 5)], False), ([(1, 0, 7, 6)], False),
    ([(0, 0, 4, 6), (4, 0, 4, 3)], False)])
def test_strips_fill_the_buffer(boxes: list[Box], complete: bool) -> None:
    buffer, views = _regions(boxes)
    written = WrittenStrips(buffer, Ranges())
    assert not written.is_complete
    for view in views:
        written.add(view)
    assert written.is_complete is complete
    assert written.covers(buffer) is complete


def test_a_copy_is_not_changed_by_later_writes() -> None:
    buffer, (upper, lower) = _regions([(0, 0, 4, 6), (4, 0, 4, 6)])
    first = WrittenStrips(buffer, Ranges())
    first.add(upper)
    second = first.copy()
    second.add(lower)
    assert (first.is_complete, second.is_complete) == (False, True)
    third = first.copy()
    first.add(lower)
    assert (first.is_complete, third.is_complete) == (True, False)
    assert third.covers(upper)


UB, L1 = "#hivm.address_space<ub>", "#hivm.address_space<cbuf>"


def _in_loops(trips: tuple[int, ...], offsets: tuple[str, str], sizes: tuple[int, int], lines: str = "", *, space: str = UB,
              cores: int = 1) -> tuple[WrittenStrips, SSAValue, dict[SSAValue, float]]:
    """Returns a view in loops over ``%i0``, ``%i1``, ... of an 8 x 6 buffer, and the trip counts; ``%v`` is the Vector core."""
    loops = "".join(f"%n{at} = arith.constant {count} : index\nscf.for %i{at} = %c0 to %n{at} step %c1 {{\n"
                    for at, count in enumerate(trips))
    module = parse_module(f"""func.func @k(%n: index) {{
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c2 = arith.constant 2 : index
      %c3 = arith.constant 3 : index
      %c4 = arith.constant 4 : index
      tile.launch(%c1) sub_blocks {cores} : i64 explicit {{
      ^bb0(%block: index, %v: index):
        %x = tile.alloc "x" : memref<8x6xf32, {space}>
        {loops}{lines}
        %r = tile.region %x[{offsets[0]}, {offsets[1]}] [{sizes[0]}, {sizes[1]}] keep [0, 1] : memref<8x6xf32, {space}>
            to memref<{sizes[0]}x{sizes[1]}xf32, strided<[6, 1], offset: ?>, {space}>
        {'}' * len(trips)}
      }}
      return
    }}""")
    buffer, *_, view = (op.results[0] for op in module.walk() if isinstance(op, (tile.AllocOp, tile.RegionOp)))
    ranges = Ranges()
    counts = {op.body.block.args[0]: ranges.trip_count(op).low for op in module.walk() if isinstance(op, scf.ForOp)}
    return WrittenStrips(buffer, ranges), view, counts


PAIRS = "%t = arith.muli %i0, %c2 : index"
TRIPLES = "%t = arith.muli %i0, %c3 : index"
BOTH = "%q = arith.muli %i0, %c4 : index %t = arith.addi %q, %i1 : index"
SHIFTED = "%t = arith.addi %i0, %c1 : index"


@pytest.mark.parametrize(("trips", "offsets", "sizes", "lines", "complete"), [
    ((8,), ("%i0", "0"), (1, 6), "", True), ((7,), ("%i0", "0"), (1, 6), "", False),
    ((6,), ("0", "%i0"), (8, 1), "", True),
    ((4,), ("%t", "0"), (2, 6), PAIRS, True), ((4,), ("%t", "0"), (1, 6), PAIRS, False),  # every second row
    ((3,), ("%t", "0"), (2, 6), PAIRS, False), ((3,), ("%t", "0"), (2, 6), TRIPLES, False),  # rows 6 and 7; rows 2 and 5
    ((2,), ("0", "%t"), (8, 3), TRIPLES, True), ((2,), ("0", "%t"), (8, 2), TRIPLES, False),
    ((2, 4), ("%t", "0"), (1, 6), BOTH, True), ((2, 3), ("%t", "0"), (1, 6), BOTH, False),  # row 3 is missing
    ((7,), ("%t", "0"), (1, 6), SHIFTED, False),  # row 0 is missing
    ((8, 6), ("%i0", "%i1"), (1, 1), "", True),
    ((8, 5), ("%i0", "%i1"), (1, 1), "", False),
    ((6,), ("%i0", "%i0"), (1, 1), "", False), ((4,), ("%t", "%i0"), (2, 3), PAIRS, False),  # diagonals
    ((8,), ("%i0", "0"), (1, 5), "", False),
    ((8,), ("%n", "0"), (1, 6), "", False),  # a row that is not known
])
def test_a_write_in_loops_counts_for_all_iterations(trips: tuple[int, ...], offsets: tuple[str, str], sizes: tuple[int, int],
                                                    lines: str, complete: bool) -> None:
    written, view, counts = _in_loops(trips, offsets, sizes, lines)
    once = written.copy()
    once.add(view)
    written.add(view, counts)
    assert written.is_complete is complete
    assert not once.is_complete  # one iteration fills a part only


def test_rows_that_a_loop_leaves_out_can_be_written_by_another_statement() -> None:
    row = f"%first = tile.region %x[0, 0] [1, 6] keep [0, 1] : memref<8x6xf32, {UB}> to memref<1x6xf32, strided<[6, 1]>, {UB}>"
    written, view, counts = _in_loops((7,), ("%t", "0"), (1, 6), f"{SHIFTED}\n{row}")
    written.add(view, counts)
    assert not written.is_complete
    assert isinstance(view.owner, tile.RegionOp)
    (first,) = [use.operation.results[0] for use in view.owner.source.uses if use.operation is not view.owner]
    assert not written.covers(first)
    written.add(first)
    assert written.is_complete


@pytest.mark.parametrize(("first", "is_known"), [(0, True), (2, False)])
def test_a_region_of_a_region_starts_where_the_outer_one_does(first: int, is_known: bool) -> None:
    """Rows 4 and 5, of rows 4 to 7, are known; rows 6 and 7 of them have a second offset, and count for nothing."""
    buffer, (outer, upper, lower) = _regions([(4, 0, 4, 6), (0, 0, 4, 6), (6, 0, 2, 6)])
    inner = tile.RegionOp(outer, [first, 0], [2, 6], [0, 1]).result
    written = WrittenStrips(buffer, Ranges())
    for view in (upper, inner, lower):
        written.add(view)
    assert written.is_complete is is_known


def test_a_row_in_another_shape_is_a_strip_of_a_loop() -> None:
    row = "memref<1x6xf32, strided<[6, 1], offset: ?>, " + UB + ">"
    module = parse_module(f"""func.func @k() {{
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c8 = arith.constant 8 : index
      %x = tile.alloc "x" : memref<8x6xf32, {UB}>
      scf.for %i = %c0 to %c8 step %c1 {{
        %r = tile.region %x[%i, 0] [1, 6] keep [0, 1] : memref<8x6xf32, {UB}> to {row}
        %w = tile.view %r : {row} to memref<2x3xf32, strided<[3, 1], offset: ?>, {UB}>
      }}
      return
    }}""")
    (buffer,) = [op.result for op in module.walk() if isinstance(op, tile.AllocOp)]
    (view,) = [op.result for op in module.walk() if isinstance(op, tile.ViewOp)]
    (loop,) = [op for op in module.walk() if isinstance(op, scf.ForOp)]
    written = WrittenStrips(buffer, Ranges())
    written.add(view)
    assert not written.is_complete
    written.add(view, {loop.body.block.args[0]: 8})
    assert written.is_complete


HALF = "%t = arith.muli %v, %c4 : index"


@pytest.mark.parametrize(("space", "cores", "size", "lines", "complete"), [
    (L1, 2, 4, HALF, True),
    (UB, 2, 4, HALF, False),  # each Vector core has its own UB
    (L1, 1, 4, HALF, False),  # no core writes the second half
    (L1, 2, 3, HALF, False), (L1, 2, 3, "%t = arith.muli %v, %c3 : index", False),  # row 3; rows 6 and 7
    (L1, 2, 4, "%t = arith.muli %v, %c3 : index", False),  # rows 0 to 6
])
def test_the_parts_of_all_vector_cores_together_are_one_write(space: str, cores: int, size: int, lines: str,
                                                              complete: bool) -> None:
    written, view, _ = _in_loops((), ("%t", "0"), (size, 6), lines, space=space, cores=cores)
    written.add(view)
    assert written.is_complete is complete
    assert written.covers(view) is (complete or cores == 1)  # the only core's index is 0: the first rows
