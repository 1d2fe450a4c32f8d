// RUN: tilelang-npu opt %s -p sink-buffers | filecheck %s
// In its first round the inner loop only reads if something was written, but every later one reads what the round before left:
// in the first round of all that is what the outer loop's last iteration left.
// CHECK:      tile.alloc "x" : memref
// CHECK-NEXT: scf.for
func.func @k(%X: memref<8x64xf32, #hivm.address_space<gm>>, %Y: memref<8x64xf32, #hivm.address_space<gm>>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %x = tile.alloc "x" : memref<8x64xf32, #hivm.address_space<ub>>
  scf.for %i = %c0 to %c4 step %c1 {
    scf.for %r = %c0 to %c4 step %c1 {
      %first = arith.cmpi eq, %r, %c0 : index
      scf.if %first {
      } else {
        tile.copy %x to %Y : memref<8x64xf32, #hivm.address_space<ub>> to memref<8x64xf32, #hivm.address_space<gm>>
      }
      %last = arith.cmpi sge, %r, %c2 : index
      scf.if %last {
        tile.copy %X to %x : memref<8x64xf32, #hivm.address_space<gm>> to memref<8x64xf32, #hivm.address_space<ub>>
      }
    }
  } {tile.num_stages = 2 : i64}
  return
}
