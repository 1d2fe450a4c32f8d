// RUN: tilelang-npu opt %s -p assign-cores,sink-buffers | filecheck %s
// Only one arm of a branch is executed: the loops in its arms share no values.
// CHECK:      scf.if
// CHECK-NEXT:   scf.for
// CHECK-NEXT:     tile.alloc "x" slots 2
// CHECK:      else
// CHECK-NEXT:   scf.for
// CHECK-NEXT:     tile.alloc "x" slots 3
func.func @k(%X: memref<8x64xf32, #hivm.address_space<gm>>, %Y: memref<8x64xf32, #hivm.address_space<gm>>, %c: i1) attributes {hacc.entry} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %x = tile.alloc "x" : memref<8x64xf32, #hivm.address_space<ub>>
  scf.if %c {
    scf.for %i = %c0 to %c4 step %c1 {
      tile.copy %X to %x : memref<8x64xf32, #hivm.address_space<gm>> to memref<8x64xf32, #hivm.address_space<ub>>
      tile.copy %x to %Y : memref<8x64xf32, #hivm.address_space<ub>> to memref<8x64xf32, #hivm.address_space<gm>>
    } {tile.num_stages = 2 : i64}
  } else {
    scf.for %i = %c0 to %c4 step %c1 {
      tile.copy %X to %x : memref<8x64xf32, #hivm.address_space<gm>> to memref<8x64xf32, #hivm.address_space<ub>>
      tile.copy %x to %Y : memref<8x64xf32, #hivm.address_space<ub>> to memref<8x64xf32, #hivm.address_space<gm>>
    } {tile.num_stages = 3 : i64}
  }
  return
}
