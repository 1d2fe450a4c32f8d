// RUN: tilelang-npu opt %s -p unroll-loops --verify-diagnostics | filecheck %s
// CHECK: error[T260]: T.unroll needs bounds that are constants
func.func @k(%m: memref<8xf32, #hivm.address_space<ub>>, %v: f32, %n: index) {
  %low = arith.constant 0 : index
  %step = arith.constant 1 : index
  scf.for %i = %low to %n step %step {
    memref.store %v, %m[%i] : memref<8xf32, #hivm.address_space<ub>>
  } {tile.unroll}
  return
}
