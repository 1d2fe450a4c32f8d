// RUN: tilelang-npu opt %s -p sink-buffers | filecheck %s
// A later iteration, which may skip the branch, reads the value that the branch wrote: the value is loop-carried.
// CHECK:      tile.alloc "x" : memref
// CHECK-NEXT: arith.index_cast
// CHECK-NEXT: scf.for
func.func @k(%X: memref<8x64xf32, #hivm.address_space<gm>>, %Y: memref<8x64xf32, #hivm.address_space<gm>>, %n: i32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %x = tile.alloc "x" : memref<8x64xf32, #hivm.address_space<ub>>
  %last = arith.index_cast %n : i32 to index
  scf.for %t = %c0 to %c4 step %c1 {
    %c = arith.cmpi slt, %t, %last : index
    scf.if %c {
      tile.copy %X to %x : memref<8x64xf32, #hivm.address_space<gm>> to memref<8x64xf32, #hivm.address_space<ub>>
    }
    scf.if %c {
      tile.copy %x to %Y : memref<8x64xf32, #hivm.address_space<ub>> to memref<8x64xf32, #hivm.address_space<gm>>
    }
  } {tile.num_stages = 2 : i64}
  return
}
