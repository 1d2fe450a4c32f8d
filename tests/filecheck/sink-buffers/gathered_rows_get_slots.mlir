// RUN: tilelang-npu opt %s -p assign-cores,sink-buffers | filecheck %s
// RUN: tilelang-npu opt %s -p "assign-cores,sink-buffers{synchronise=false}" | filecheck %s --check-prefix HAND
// Rows are gathered one by one and stored again: they get three slots, although no stages are requested. Buffers that are
// modified in between have one slot, and so has a buffer that takes more than a part of UB.
// CHECK:      scf.for %i
// CHECK-NEXT:   %x = tile.alloc "x" slots 3 : i64
// If the author sets the flags, they are those of one slot.
// HAND:       %x = tile.alloc "x" : memref
// CHECK:      scf.for %j
// CHECK-NEXT:   %y = tile.alloc "y" : memref
// CHECK:      scf.for %k
// CHECK-NEXT:   %z = tile.alloc "z" : memref
func.func @k(%X: memref<64xf32, #hivm.address_space<gm>>, %Y: memref<64xf32, #hivm.address_space<gm>>, %Z: memref<8192xf32, #hivm.address_space<gm>>) attributes {hacc.entry} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %x = tile.alloc "x" : memref<64xf32, #hivm.address_space<ub>>
  %y = tile.alloc "y" : memref<64xf32, #hivm.address_space<ub>>
  %z = tile.alloc "z" : memref<8192xf32, #hivm.address_space<ub>>
  scf.for %i = %c0 to %c4 step %c1 {
    tile.copy %X to %x : memref<64xf32, #hivm.address_space<gm>> to memref<64xf32, #hivm.address_space<ub>>
    tile.copy %x to %Y : memref<64xf32, #hivm.address_space<ub>> to memref<64xf32, #hivm.address_space<gm>>
  }
  scf.for %j = %c0 to %c4 step %c1 {
    tile.copy %X to %y : memref<64xf32, #hivm.address_space<gm>> to memref<64xf32, #hivm.address_space<ub>>
    tile.elementwise "exp" ins(%y : memref<64xf32, #hivm.address_space<ub>>) outs(%y : memref<64xf32, #hivm.address_space<ub>>)
    tile.copy %y to %Y : memref<64xf32, #hivm.address_space<ub>> to memref<64xf32, #hivm.address_space<gm>>
  }
  scf.for %k = %c0 to %c4 step %c1 {
    tile.copy %Z to %z : memref<8192xf32, #hivm.address_space<gm>> to memref<8192xf32, #hivm.address_space<ub>>
    tile.copy %z to %Z : memref<8192xf32, #hivm.address_space<ub>> to memref<8192xf32, #hivm.address_space<gm>>
  }
  return
}
