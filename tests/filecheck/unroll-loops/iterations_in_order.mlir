// RUN: tilelang-npu opt %s -p unroll-loops | filecheck %s
// Three iterations, one after the other, each with its constant.
// CHECK:      %step = arith.constant 2
// CHECK-NOT:  scf.for
// CHECK:      %[[A:.*]] = arith.constant 2 : index
// CHECK-NEXT: memref.store %v, %m[%[[A]]]
// CHECK-NEXT: %[[B:.*]] = arith.constant 4 : index
// CHECK-NEXT: memref.store %v, %m[%[[B]]]
// CHECK-NEXT: %[[C:.*]] = arith.constant 6 : index
// CHECK-NEXT: memref.store %v, %m[%[[C]]]
func.func @k(%m: memref<8xf32, #hivm.address_space<ub>>, %v: f32) {
  %low = arith.constant 2 : index
  %high = arith.constant 7 : index
  %step = arith.constant 2 : index
  scf.for %i = %low to %high step %step {
    memref.store %v, %m[%i] : memref<8xf32, #hivm.address_space<ub>>
  } {tile.unroll}
  return
}
