// RUN: tilelang-npu opt %s -p assign-cores,lower-to-hivm | filecheck %s
// A grid of 4 columns and 5 rows in panels of two rows: a panel has eight blocks, the last panel has one row, and every
// other panel runs from right to left.
// CHECK:      %[[RAW:.*]] = hivm.hir.get_block_idx
// CHECK-NEXT: %block = arith.index_cast
// CHECK-NEXT: %[[PANEL:.*]] = arith.divui %block, %c8
// CHECK-NEXT: %[[INSIDE:.*]] = arith.remui %block, %c8
// CHECK:      %[[START:.*]] = arith.muli %[[PANEL]], %c2
// CHECK-NEXT: %[[LEFT:.*]] = arith.subi %c5, %[[START]]
// CHECK-NEXT: %[[WIDTH:.*]] = arith.minsi %c2, %[[LEFT]]
// CHECK-NEXT: %[[IN:.*]] = arith.remui %[[INSIDE]], %[[WIDTH]]
// CHECK-NEXT: %by = arith.addi %[[START]], %[[IN]]
// CHECK-NEXT: %[[ALONG:.*]] = arith.divui %[[INSIDE]], %[[WIDTH]]
// CHECK-NEXT: %[[ODD:.*]] = arith.remui %[[PANEL]], %c2
// CHECK:      %bx = arith.addi %[[ALONG]]
func.func @k(%A: memref<20x8xf32, #hivm.address_space<gm>>) {
  %c4 = arith.constant 4 : index
  %c5 = arith.constant 5 : index
  tile.launch(%c4, %c5) sub_blocks 1 : i64 panel 2 : i64 {
  ^bb0(%bx: index, %by: index):
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    %t = tile.alloc "t" : memref<1x8xf32, #hivm.address_space<ub>>
    %row = arith.muli %by, %c4 : index
    %place = arith.addi %row, %bx : index
    %g = tile.region %A[%place, 0] [1, 8] keep [0, 1] : memref<20x8xf32, #hivm.address_space<gm>> to memref<1x8xf32, strided<[8, 1], offset: ?>, #hivm.address_space<gm>>
    tile.copy %t to %g : memref<1x8xf32, #hivm.address_space<ub>> to memref<1x8xf32, strided<[8, 1], offset: ?>, #hivm.address_space<gm>>
  }
  return
}
