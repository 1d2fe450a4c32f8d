// RUN: tilelang-npu opt %s -p assign-cores,bind-sub-blocks{mixed=false} | filecheck %s
// The sum over the rows needs all rows, so the tile is not divided, and the first core does the work.
// CHECK:      tile.launch(%c1) sub_blocks 2 : i64 explicit {
// CHECK:      arith.cmpi eq, %vid
// CHECK-NEXT: scf.if
// CHECK:      tile.alloc "x" : memref<16x16xf32
func.func @k(%X: memref<16x16xf32, #hivm.address_space<gm>>, %Y: memref<1x16xf32, #hivm.address_space<gm>>) {
  %c1 = arith.constant 1 : index
  tile.launch(%c1) sub_blocks 2 : i64 spread {
  ^bb0(%cid: index):
    %x = tile.alloc "x" : memref<16x16xf32, #hivm.address_space<ub>>
    %y = tile.alloc "y" : memref<1x16xf32, #hivm.address_space<ub>>
    tile.copy %X to %x : memref<16x16xf32, #hivm.address_space<gm>> to memref<16x16xf32, #hivm.address_space<ub>>
    tile.reduce "reduce_sum" ins(%x : memref<16x16xf32, #hivm.address_space<ub>>) outs(%y : memref<1x16xf32, #hivm.address_space<ub>>) dims = [0]
    tile.copy %y to %Y : memref<1x16xf32, #hivm.address_space<ub>> to memref<1x16xf32, #hivm.address_space<gm>>
  }
  return
}
