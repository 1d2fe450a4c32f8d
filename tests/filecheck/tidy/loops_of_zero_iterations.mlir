// RUN: tilelang-npu opt %s -p tidy | filecheck %s
// A loop from 4 to 4 is removed, and its results are its initial values; a loop that may have iterations stays.
// CHECK-LABEL: func.func @k
// CHECK-NOT:   hivm.hir.vabs
// CHECK:       scf.for
// CHECK-NEXT:    hivm.hir.vrelu
// CHECK:       memref.store %x
func.func @k(%u: memref<8xf32, #hivm.address_space<ub>>, %m: memref<1xf32>, %x: f32, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %r = scf.for %i = %c4 to %c4 step %c1 iter_args(%a = %x) -> (f32) {
    hivm.hir.vabs ins(%u : memref<8xf32, #hivm.address_space<ub>>) outs(%u : memref<8xf32, #hivm.address_space<ub>>)
    %b = arith.addf %a, %a : f32
    scf.yield %b : f32
  }
  scf.for %i = %c0 to %n step %c1 {
    hivm.hir.vrelu ins(%u : memref<8xf32, #hivm.address_space<ub>>) outs(%u : memref<8xf32, #hivm.address_space<ub>>)
  }
  memref.store %r, %m[%c0] : memref<1xf32>
  return
}
