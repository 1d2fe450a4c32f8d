"""Operations that are safe at every point of a ``T.Parallel``: accesses within bounds, divisions by non-zero numbers."""

from __future__ import annotations

from xdsl.dialects import arith, memref

from tilelang_npu.dialects.text import parse_module
from tilelang_npu.transforms.tile.vectorise_parallel.speculation import is_in_bounds, is_speculatable

TEXT = """func.func @f(%x: memref<8xf32, #hivm.address_space<gm>>, %y: memref<8xf32, #hivm.address_space<ub>>, %n: i32) {
  tile.parallel [8] {
  ^bb0(%i: index):
    %c1 = arith.constant 1 : index
    %after = arith.addi %i, %c1 : index
    %before = arith.subi %i, %c1 : index
    %0 = memref.load %x[%i] : memref<8xf32, #hivm.address_space<gm>>
    %1 = memref.load %x[%after] : memref<8xf32, #hivm.address_space<gm>>
    %2 = memref.load %x[%before] : memref<8xf32, #hivm.address_space<gm>>
    %3 = memref.load %y[%i] : memref<8xf32, #hivm.address_space<ub>>
    %4 = memref.load %y[%after] : memref<8xf32, #hivm.address_space<ub>>
    %5 = arith.divui %i, %after : index
    %at = arith.index_cast %i : index to i32
    %6 = arith.divui %at, %n : i32
  }
  return
}"""


def test_an_element_is_there_or_a_copy_ends_before_it() -> None:
    loads = [op for op in parse_module(TEXT).walk() if isinstance(op, memref.LoadOp)]
    assert [is_in_bounds(load, clipped=False) for load in loads] == [True, False, False, True, False]
    assert [is_in_bounds(load, clipped=True) for load in loads] == [True, True, False, True, False]


def test_a_division_is_computed_anywhere_where_the_divisor_is_not_0() -> None:
    divisions = [op for op in parse_module(TEXT).walk() if isinstance(op, arith.DivUIOp)]
    assert [is_speculatable(op) for op in divisions] == [True, False]
