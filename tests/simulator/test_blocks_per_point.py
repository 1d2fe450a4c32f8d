"""Which kernels have several blocks for a block of the launch, and how many blocks may then be launched."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.func import FuncOp

from simulator import texts
from tilelang_npu import TileError
from tilelang_npu.dialects.text import parse_module
from tilelang_npu.simulator import Program
from tilelang_npu.simulator.codegen.control import blocks_per_point

KERNEL = """
module attributes {hacc.target = #hacc.target<"Ascend910B2">} {
  func.func @k(%A: memref<?xi32, #hivm.address_space<gm>>, %n: i32, %grid_x: i32, %grid_y: i32, %grid_z: i32) attributes {
      hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>, hivm.func_core_type = #hivm.func_core_type<AIV>} {
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c3 = arith.constant 3 : index
    %c4 = arith.constant 4 : index
    %c6 = arith.constant 6 : index
    %m = arith.index_cast %n : i32 to index
    %raw = hivm.hir.get_block_idx -> i64
    %b = arith.index_cast %raw : i64 to index
BODY
    return
  }
}
"""


@pytest.mark.parametrize(("body", "of_two", "of_four"), [
    ("%v = arith.remui %b, %c2 : index\n%c = arith.divui %b, %c2 : index", 2, 2),
    ("%v = arith.remsi %b, %c2 : index\n%c = arith.divsi %b, %c4 : index", 2, 2),
    ("%v = arith.remui %b, %c4 : index\n%c = arith.floordivsi %b, %c4 : index", 1, 4),
    ("%v = arith.remui %b, %c2 : index", 2, 2),
    ("%c = arith.divui %b, %c2 : index", 2, 1),  # both Vector cores do the same
    ("%v = arith.remui %b, %c2 : index\n%c = arith.divui %b, %c3 : index", 1, 1),
    ("%v = arith.remui %b, %c2 : index\n%w = arith.remui %b, %c4 : index", 1, 1),
    ("%v = arith.remui %b, %c2 : index\n%c = arith.addi %b, %c2 : index", 1, 1),
    ("%v = arith.remui %c6, %b : index", 1, 1),
    ("%v = arith.remui %b, %m : index\n%c = arith.divui %b, %m : index", 1, 1),
    ("", 1, 1)])
def test_a_block_index_that_is_taken_apart(body: str, of_two: int, of_four: int) -> None:
    """The blocks for each point of the grid on chips with two and with four Vector cores in an AI core."""
    module = parse_module(KERNEL.replace("BODY", body))
    function = next(op for op in module.walk() if isinstance(op, FuncOp))
    assert blocks_per_point(function, 2) == of_two
    assert blocks_per_point(function, 4) == of_four
    program = Program(module)
    assert program.most_blocks == of_two * 65535
    with pytest.raises(TileError, match=f"{of_two * 65535 + 1} blocks"):
        program.trace([np.zeros(4, np.int32), 1], blocks=of_two * 65535 + 1)


def test_a_mixed_kernel_has_one() -> None:
    assert Program(parse_module(texts.add_tiles())).most_blocks == 65535


def test_the_last_block_of_a_launch_of_pairs_runs() -> None:
    body = """%v = arith.remui %b, %c2 : index
    %c = arith.divui %b, %c2 : index
    %twice = arith.muli %c, %c2 : index
    %place = arith.addi %twice, %v : index
    %value = arith.index_cast %place : index to i32
    memref.store %value, %A[%place] : memref<?xi32, #hivm.address_space<gm>>"""
    count = 2 * 65535
    a = np.zeros(count, np.int32)
    Program(parse_module(KERNEL.replace("BODY", body))).run([a, 1], blocks=count)
    np.testing.assert_array_equal(a, np.arange(count))
