// RUN: tilelang-npu opt %s -p assign-cores,sink-buffers | filecheck %s
// The position of the author's allocation makes no difference; a buffer that may be read with the previous iteration's value
// (%y) has one slot.
// CHECK:      scf.for
// CHECK-NEXT:   tile.alloc "x" slots 2
// CHECK-NEXT:   tile.alloc "y" : memref
func.func @k(%X: memref<64xf32, #hivm.address_space<gm>>, %Y: memref<64xf32, #hivm.address_space<gm>>) attributes {hacc.entry} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  scf.for %i = %c0 to %c4 step %c1 {
    %x = tile.alloc "x" : memref<64xf32, #hivm.address_space<ub>>
    %y = tile.alloc "y" : memref<64xf32, #hivm.address_space<ub>>
    tile.copy %X to %x : memref<64xf32, #hivm.address_space<gm>> to memref<64xf32, #hivm.address_space<ub>>
    tile.copy %x to %Y : memref<64xf32, #hivm.address_space<ub>> to memref<64xf32, #hivm.address_space<gm>>
    tile.copy %y to %Y : memref<64xf32, #hivm.address_space<ub>> to memref<64xf32, #hivm.address_space<gm>>
    tile.copy %X to %y : memref<64xf32, #hivm.address_space<gm>> to memref<64xf32, #hivm.address_space<ub>>
  } {tile.num_stages = 2 : i64}
  return
}
