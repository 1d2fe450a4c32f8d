"""Positions of blocks in a grid, against the order that ``tile.LaunchOp`` describes, and loops over blocks."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from xdsl.dialects import scf
from xdsl.dialects.builtin import IntegerAttr, UnitAttr, i64

from tilelang_npu.dialects import tile
from tilelang_npu.dialects.text import parse_module
from tilelang_npu.transforms.infra.launch_blocks import grid_position, loop_over_blocks
from tilelang_npu.transforms.infra.op_builder import OpBuilder


def launch_of(sizes: list[int], vid: bool = False) -> tile.LaunchOp:
    constants = "\n".join(f"%n{axis} = arith.constant {size} : index" for axis, size in enumerate(sizes))
    grid = ", ".join(f"%n{axis}" for axis, _ in enumerate(sizes))
    arguments = ", ".join([*(f"%b{axis}: index" for axis, _ in enumerate(sizes)), *(["%vid: index"] if vid else [])])
    module = parse_module(f"""
        func.func @k(%X: memref<4096xf32, #hivm.address_space<gm>>) {{
          {constants}
          tile.launch({grid}) sub_blocks 2 : i64 {"explicit" if vid else ""} {{
          ^bb0({arguments}):
            %x = tile.alloc "x" : memref<8xf32, #hivm.address_space<ub>>
            %sum = arith.addi %b0, {"%vid" if vid else f"%b{len(sizes) - 1}"} : index
          }}
          return
        }}""")
    return next(op for op in module.walk() if isinstance(op, tile.LaunchOp))


def in_panels(columns: int, rows: int, width: int, *, upright: bool) -> Iterator[tuple[int, int]]:
    """The positions in the order of dispatch: panel by panel, along the width of each, every second panel backwards."""
    along, across = (columns, rows) if upright else (rows, columns)
    for number, start in enumerate(range(0, along, width)):
        for second in (range(across) if number % 2 == 0 else reversed(range(across))):
            for first in range(start, min(start + width, along)):
                yield (first, second) if upright else (second, first)


@pytest.mark.parametrize("sizes", [[7], [3, 5], [4, 1, 3]])
def test_blocks_are_numbered_along_the_first_axis_first(sizes: list[int]) -> None:
    launch = launch_of(sizes)
    emit = OpBuilder(launch.parent_block())
    expected: list[list[int]] = [[]]
    for size in reversed(sizes):
        expected = [[index, *rest] for rest in expected for index in range(size)]
    assert [grid_position(emit, launch, sizes, number) for number, _ in enumerate(expected)] == expected


@pytest.mark.parametrize("upright", [False, True])
@pytest.mark.parametrize("width", [1, 2, 3, 5, 9])
@pytest.mark.parametrize(("columns", "rows"), [(1, 1), (4, 6), (7, 5), (3, 8)])
def test_panels(columns: int, rows: int, width: int, upright: bool) -> None:
    launch = launch_of([columns, rows])
    launch.properties["panel"] = IntegerAttr(width, i64)
    if upright:
        launch.properties["upright"] = UnitAttr()
    emit = OpBuilder(launch.parent_block())
    found = [tuple(grid_position(emit, launch, [columns, rows], number)) for number in range(columns * rows)]
    assert found == list(in_panels(columns, rows, width, upright=upright))


@pytest.mark.parametrize("shared_buffers", [False, True])
@pytest.mark.parametrize("vid", [False, True])
def test_a_loop_over_blocks(vid: bool, shared_buffers: bool) -> None:
    launch = launch_of([5, 3], vid)
    launch.properties["panel"] = IntegerAttr(2, i64)
    loop = loop_over_blocks(launch, 4, shared_buffers=shared_buffers)
    launch.verify()
    assert launch.panel is None
    assert len(launch.grid) == 1
    core = launch.body.block.args[0]
    assert len(launch.body.block.args) == 1 + vid
    assert loop.lb is core
    assert isinstance(loop, scf.ForOp)
    assert any(isinstance(op, tile.AllocOp) for op in (launch.body.block if shared_buffers else loop.body.block).ops)
    sums = [op for op in loop.body.block.ops if op.name == "arith.addi" and op.results[0].name_hint == "sum"]
    if vid:
        assert sums[0].operands[1] is launch.body.block.args[1]
