// RUN: tilelang-npu opt %s -p assign-cores,sink-buffers | filecheck %s
// A branch reads only values that it has written: the buffer moves into the branch and its loop, although the branch may be
// skipped.
// CHECK:      scf.for %t
// CHECK:        scf.if
// CHECK-NEXT:     scf.for %k
// CHECK-NEXT:       tile.alloc "x" slots 2
func.func @k(%X: memref<8x64xf32, #hivm.address_space<gm>>, %Y: memref<4x64xf32, #hivm.address_space<gm>>, %n: i32) attributes {hacc.entry} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %x = tile.alloc "x" : memref<8x64xf32, #hivm.address_space<ub>>
  %last = arith.index_cast %n : i32 to index
  scf.for %t = %c0 to %c4 step %c1 {
    %c = arith.cmpi slt, %t, %last : index
    scf.if %c {
      scf.for %k = %c0 to %last step %c1 {
        tile.copy %X to %x : memref<8x64xf32, #hivm.address_space<gm>> to memref<8x64xf32, #hivm.address_space<ub>>
        %half = tile.region %x[0, 0] [4, 64] keep [0, 1] : memref<8x64xf32, #hivm.address_space<ub>> to memref<4x64xf32, strided<[64, 1]>, #hivm.address_space<ub>>
        tile.copy %half to %Y : memref<4x64xf32, strided<[64, 1]>, #hivm.address_space<ub>> to memref<4x64xf32, #hivm.address_space<gm>>
      } {tile.num_stages = 2 : i64}
    }
  }
  return
}
