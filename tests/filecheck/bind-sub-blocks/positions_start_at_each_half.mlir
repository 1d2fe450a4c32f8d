// RUN: tilelang-npu opt %s -p assign-cores,bind-sub-blocks{mixed=false} | filecheck %s
// Positions on the second core start where those of the first core end: at row 8, with 3 positions for each row.
// CHECK:      ^bb0(%{{.*}}: index, %vid: index):
// CHECK:      tile.alloc "x" : memref<8x16xi32
// CHECK:      %[[ROW:.*]] = arith.muli %vid, %{{.*}} : index
// CHECK:      %[[STEPS:.*]] = arith.muli %[[ROW]], %c3 : index
// CHECK:      %[[FIRST:.*]] = arith.addi %c5, %[[STEPS]] : index
// CHECK:      tile.call "arange" ins(%[[FIRST]], %c3, %c1 : index, index, index) outs(%x : memref<8x16xi32
func.func @k(%Y: memref<16x16xi32, #hivm.address_space<gm>>) {
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c5 = arith.constant 5 : index
  tile.launch(%c1) sub_blocks 2 : i64 spread {
  ^bb0(%cid: index):
    %x = tile.alloc "x" : memref<16x16xi32, #hivm.address_space<ub>>
    tile.call "arange" ins(%c5, %c3, %c1 : index, index, index) outs(%x : memref<16x16xi32, #hivm.address_space<ub>>)
    tile.copy %x to %Y : memref<16x16xi32, #hivm.address_space<ub>> to memref<16x16xi32, #hivm.address_space<gm>>
  }
  return
}
