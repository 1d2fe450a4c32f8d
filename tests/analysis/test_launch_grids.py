"""The grid of a launch, and what its author leaves to the compiler."""

from __future__ import annotations

import pytest

from tilelang_npu.analysis.launch_grids import constant_grid, is_left_to_compiler
from tilelang_npu.dialects import tile
from tilelang_npu.dialects.text import parse_module


def launch_of(sizes: str, body: str = "") -> tile.LaunchOp:
    arguments = ", ".join(f"%b{index}: index" for index, _ in enumerate(sizes.split(",")))
    module = parse_module(f"""
        func.func @k(%n: index) {{
          %c3 = arith.constant 3 : index
          %c5 = arith.constant 5 : index
          %sum = arith.addi %c3, %c5 : index
          tile.launch({sizes}) sub_blocks 1 : i64 {{
          ^bb0({arguments}):
            {body}
          }}
          return
        }}""")
    return next(op for op in module.walk() if isinstance(op, tile.LaunchOp))


@pytest.mark.parametrize(("sizes", "expected"), [("%c3", [3]), ("%c5, %c3", [5, 3]), ("%sum", [8]), ("%c3, %n", None)])
def test_a_grid_is_constant_if_each_size_is(sizes: str, expected: list[int] | None) -> None:
    assert constant_grid(launch_of(sizes)) == expected


@pytest.mark.parametrize(("body", "expected"), [
    ("", True),
    ("%c = arith.constant 1 : index", True),
    ("hivm.hir.pipe_barrier[<PIPE_ALL>]", False),
    ('tile.on_core "vector" {\n^bb1:\n}', False),
])
def test_scopes_and_barriers_are_the_authors(body: str, expected: bool) -> None:
    assert is_left_to_compiler(launch_of("%c3", body)) is expected
