// RUN: tilelang-npu opt %s -p assign-cores,sink-buffers | filecheck %s
// Both loops are pipelined; the inner one, which loads the tile in each iteration, selects its slots.
// CHECK:      scf.for
// CHECK-NOT:    tile.alloc
// CHECK:        scf.for
// CHECK-NEXT:     tile.alloc "x" slots 2
func.func @k(%X: memref<8x64xf32, #hivm.address_space<gm>>, %Y: memref<8x64xf32, #hivm.address_space<gm>>) attributes {hacc.entry} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %x = tile.alloc "x" : memref<8x64xf32, #hivm.address_space<ub>>
  scf.for %i = %c0 to %c4 step %c1 {
    scf.for %j = %c0 to %c4 step %c1 {
      tile.copy %X to %x : memref<8x64xf32, #hivm.address_space<gm>> to memref<8x64xf32, #hivm.address_space<ub>>
      tile.copy %x to %Y : memref<8x64xf32, #hivm.address_space<ub>> to memref<8x64xf32, #hivm.address_space<gm>>
    } {tile.num_stages = 2 : i64}
  } {tile.num_stages = 2 : i64}
  return
}
