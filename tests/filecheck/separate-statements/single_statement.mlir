// RUN: tilelang-npu opt %s -p separate-statements{in_turn=true} | filecheck %s
// The only statement of a serial loop needs no barrier.
// CHECK-NOT:  pipe_barrier
// CHECK:      scf.for
// CHECK-NEXT:   hivm.hir.vbrc
// CHECK-NEXT: }
// CHECK-NOT:  pipe_barrier
func.func @k() attributes {hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>, hivm.func_core_type = #hivm.func_core_type<AIV>} {
  %f = arith.constant 1.000000e+00 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %p0 = arith.constant 0 : i64
  %u = hivm.hir.pointer_cast(%p0) : memref<16x16xf32, #hivm.address_space<ub>>
  scf.for %i = %c0 to %c4 step %c1 {
    hivm.hir.vbrc ins(%f : f32) outs(%u : memref<16x16xf32, #hivm.address_space<ub>>)
  }
  return
}
