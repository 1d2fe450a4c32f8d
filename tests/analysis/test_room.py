"""Buffers with their slots, and as many bytes again as the largest one has, fit in a memory or not."""

from __future__ import annotations

import pytest

from tilelang_npu import target
from tilelang_npu.analysis.room import copied_buffers, fit_side_by_side
from tilelang_npu.dialects import tile
from tilelang_npu.dialects.text import parse_module

TEXT = """
func.func @k(%X: memref<64x{columns}xf32, #hivm.address_space<gm>>) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %x = tile.alloc "x" : memref<64x{columns}xf32, #hivm.address_space<ub>>
  %y = tile.alloc "y" : memref<64x{columns}xf32, #hivm.address_space<ub>>
  scf.for %i = %c0 to %c8 step %c1 {{
    tile.copy %X to %x : memref<64x{columns}xf32, #hivm.address_space<gm>> to memref<64x{columns}xf32, #hivm.address_space<ub>>
    tile.copy %x to %y : memref<64x{columns}xf32, #hivm.address_space<ub>> to memref<64x{columns}xf32, #hivm.address_space<ub>>
  }} {attributes}
  return
}}
"""


@pytest.mark.parametrize(("columns", "stages", "fits"), [(256, 1, True), (257, 1, False), (192, 2, True), (193, 2, False)])
def test_slots_of_loaded_buffers_count(columns: int, stages: int, fits: bool) -> None:
    """UB has 196 608 bytes: room for 768 columns of 64 rows; x has a slot for each stage, y has one."""
    attributes = f"{{tile.num_stages = {stages} : i64}}" if stages > 1 else ""
    module = parse_module(TEXT.format(columns=columns, attributes=attributes))
    assert fit_side_by_side(module, target.chip("910B2")) is fits


def test_only_what_is_copied_to_or_from_another_memory_is_given_slots() -> None:
    module = parse_module(TEXT.format(columns=64, attributes=""))
    (loop,) = [op for op in module.walk() if op.name == "scf.for"]
    assert {one.label.data for one in copied_buffers(loop)} == {"x"}
    (x,) = copied_buffers(loop)
    assert isinstance(x, tile.AllocOp)
    assert fit_side_by_side(module, target.chip("910B2"), {x: 10})
    assert not fit_side_by_side(module, target.chip("910B2"), {x: 11})
