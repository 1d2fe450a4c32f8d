// RUN: tilelang-npu opt %s -p sink-buffers | filecheck %s
// The inner loop writes the same row in each iteration: its offset does not depend on the induction variable.
// CHECK:      tile.alloc "x" : memref
// CHECK-NEXT: scf.for
func.func @k(%X: memref<8x64xf32, #hivm.address_space<gm>>, %Y: memref<8x64xf32, #hivm.address_space<gm>>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %x = tile.alloc "x" : memref<8x64xf32, #hivm.address_space<ub>>
  scf.for %i = %c0 to %c4 step %c1 {
    scf.for %r = %c0 to %c8 step %c1 {
      %from = tile.region %X[0, 0] [1, 64] keep [0, 1] : memref<8x64xf32, #hivm.address_space<gm>> to memref<1x64xf32, strided<[64, 1]>, #hivm.address_space<gm>>
      %row = tile.region %x[0, 0] [1, 64] keep [0, 1] : memref<8x64xf32, #hivm.address_space<ub>> to memref<1x64xf32, strided<[64, 1]>, #hivm.address_space<ub>>
      tile.copy %from to %row : memref<1x64xf32, strided<[64, 1]>, #hivm.address_space<gm>> to memref<1x64xf32, strided<[64, 1]>, #hivm.address_space<ub>>
    }
    tile.copy %x to %Y : memref<8x64xf32, #hivm.address_space<ub>> to memref<8x64xf32, #hivm.address_space<gm>>
  } {tile.num_stages = 2 : i64}
  return
}
