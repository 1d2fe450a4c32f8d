// RUN: tilelang-npu opt %s -p unroll-loops | filecheck %s
// A loop of one iteration becomes its body; a loop of none is removed; a loop of two stays.
// CHECK-LABEL: func.func @k
// CHECK:      memref.store %v, %m[%low]
// CHECK-NEXT: scf.for %j = %low to %high step %step
// CHECK-NEXT:   memref.store
// CHECK-NEXT: }
// CHECK-NEXT: return
func.func @k(%m: memref<8xf32, #hivm.address_space<ub>>, %v: f32) {
  %low = arith.constant 2 : index
  %high = arith.constant 5 : index
  %step = arith.constant 2 : index
  scf.for %i = %low to %step step %step {
    memref.store %v, %m[%i] : memref<8xf32, #hivm.address_space<ub>>
  }
  %four = arith.constant 4 : index
  scf.for %i = %low to %four step %step {
    memref.store %v, %m[%i] : memref<8xf32, #hivm.address_space<ub>>
  }
  scf.for %j = %low to %high step %step {
    memref.store %v, %m[%j] : memref<8xf32, #hivm.address_space<ub>>
  }
  return
}
