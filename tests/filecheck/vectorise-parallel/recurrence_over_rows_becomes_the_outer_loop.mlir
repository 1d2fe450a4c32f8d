// RUN: tilelang-npu opt %s -p vectorise-parallel | filecheck %s
// A serial loop over rows in the body becomes the outer loop: each point stays in its column.
// CHECK:      scf.for
// CHECK:        tile.elementwise "add"
// CHECK-NOT:  memref.load
func.func @k(%s: memref<8x64xf32, #hivm.address_space<ub>>) {
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  tile.parallel [64] {
  ^bb0(%j: index):
    scf.for %i = %c1 to %c8 step %c1 {
      %above = arith.subi %i, %c1 : index
      %x = memref.load %s[%above, %j] : memref<8x64xf32, #hivm.address_space<ub>>
      %z = arith.addf %x, %x : f32
      memref.store %z, %s[%i, %j] : memref<8x64xf32, #hivm.address_space<ub>>
    }
  }
  return
}
