// RUN: tilelang-npu opt %s -p insert-sync | filecheck %s
// The barrier between the two fills of %z moves into the branch, before the second fill. The fills of %u around it then need
// no barrier.
// CHECK:      scf.if
// CHECK-NEXT:   hivm.hir.vbrc
// CHECK-NEXT:   hivm.hir.pipe_barrier[<PIPE_V>]
// CHECK-NEXT:   hivm.hir.vbrc
// CHECK-NEXT:   hivm.hir.vbrc
func.func @k(%d: i1) attributes {hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>, hivm.func_core_type = #hivm.func_core_type<AIV>} {
  %f = arith.constant 1.000000e+00 : f32
  %p0 = arith.constant 0 : i64
  %p1 = arith.constant 1024 : i64
  %u = hivm.hir.pointer_cast(%p0) : memref<16x16xf32, #hivm.address_space<ub>>
  %z = hivm.hir.pointer_cast(%p1) : memref<16x16xf32, #hivm.address_space<ub>>
  hivm.hir.vbrc ins(%f : f32) outs(%z : memref<16x16xf32, #hivm.address_space<ub>>)
  scf.if %d {
    hivm.hir.vbrc ins(%f : f32) outs(%u : memref<16x16xf32, #hivm.address_space<ub>>)
    hivm.hir.vbrc ins(%f : f32) outs(%z : memref<16x16xf32, #hivm.address_space<ub>>)
    hivm.hir.vbrc ins(%f : f32) outs(%u : memref<16x16xf32, #hivm.address_space<ub>>)
  }
  return
}
