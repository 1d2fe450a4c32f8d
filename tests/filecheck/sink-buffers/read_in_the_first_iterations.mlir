// RUN: tilelang-npu opt %s -p sink-buffers | filecheck %s
// The first iteration of the inner loop reads only if data was written, but every later one reads the data of the previous
// one: in the very first iteration this is data from the outer loop's previous iteration.
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
