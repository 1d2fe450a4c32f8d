// RUN: tilelang-npu opt %s -p sink-buffers | filecheck %s
// A buffer without users is not moved.
// CHECK:      tile.alloc "unused" : memref
// CHECK-NEXT: tile.alloc "x" : memref
func.func @k(%X: memref<8x64xf32, #hivm.address_space<gm>>, %Y: memref<8x64xf32, #hivm.address_space<gm>>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %unused = tile.alloc "unused" : memref<8x64xf32, #hivm.address_space<ub>>
  %x = tile.alloc "x" : memref<8x64xf32, #hivm.address_space<ub>>
  tile.copy %X to %x : memref<8x64xf32, #hivm.address_space<gm>> to memref<8x64xf32, #hivm.address_space<ub>>
  return
}
