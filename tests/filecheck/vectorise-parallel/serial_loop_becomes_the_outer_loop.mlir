// RUN: tilelang-npu opt %s -p vectorise-parallel | filecheck %s
// A serial loop in the body becomes the outer loop; its body is vector work.
// CHECK:      scf.for
// CHECK:        tile.elementwise "add"
// CHECK-NOT:  memref.load
func.func @k(%m: memref<8xf32, #hivm.address_space<ub>>, %a: memref<12xf32, #hivm.address_space<ub>>) {
  %zero = arith.constant 0 : index
  %four = arith.constant 4 : index
  %one = arith.constant 1 : index
  tile.parallel[8] {
  ^bb0(%i: index):
    scf.for %k = %zero to %four step %one {
      %j = arith.addi %i, %k : index
      %x = memref.load %m[%i] : memref<8xf32, #hivm.address_space<ub>>
      %y = memref.load %a[%j] : memref<12xf32, #hivm.address_space<ub>>
      %z = arith.addf %x, %y : f32
      memref.store %z, %m[%i] : memref<8xf32, #hivm.address_space<ub>>
    }
  }
  return
}
