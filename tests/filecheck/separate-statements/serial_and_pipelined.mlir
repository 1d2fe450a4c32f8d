// RUN: tilelang-npu opt %s -p separate-statements{in_turn=true} | filecheck %s
// RUN: tilelang-npu opt %s -p separate-statements | filecheck %s --check-prefix OFF
// A barrier is between the two statements of the serial loop, and one before the first statement, which the next iteration
// repeats. The loop whose buffer has two slots has none, and one is between the loops.
// CHECK:      scf.for
// CHECK:        hivm.hir.pipe_barrier[<PIPE_ALL>]
// CHECK-NEXT:   hivm.hir.vbrc
// CHECK-NEXT:   hivm.hir.pipe_barrier[<PIPE_ALL>]
// CHECK-NEXT:   hivm.hir.vbrc
// CHECK-NEXT: }
// CHECK-NEXT: hivm.hir.pipe_barrier[<PIPE_ALL>]
// CHECK-NEXT: scf.for
// CHECK-NEXT:   hivm.hir.vbrc
// CHECK-NEXT:   hivm.hir.vbrc
// CHECK-NEXT: }
// OFF-NOT: pipe_barrier
func.func @k() attributes {hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>, hivm.func_core_type = #hivm.func_core_type<AIV>} {
  %f = arith.constant 1.000000e+00 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %p0 = arith.constant 0 : i64
  %p1 = arith.constant 1024 : i64
  %p2 = arith.constant 2048 : i64
  %u = hivm.hir.pointer_cast(%p0) : memref<16x16xf32, #hivm.address_space<ub>>
  %v = hivm.hir.pointer_cast(%p1, %p2) : memref<16x16xf32, #hivm.address_space<ub>>
  scf.for %i = %c0 to %c4 step %c1 {
    hivm.hir.vbrc ins(%f : f32) outs(%u : memref<16x16xf32, #hivm.address_space<ub>>)
    hivm.hir.vbrc ins(%f : f32) outs(%u : memref<16x16xf32, #hivm.address_space<ub>>)
  }
  scf.for %i = %c0 to %c4 step %c1 {
    hivm.hir.vbrc ins(%f : f32) outs(%v : memref<16x16xf32, #hivm.address_space<ub>>)
    hivm.hir.vbrc ins(%f : f32) outs(%v : memref<16x16xf32, #hivm.address_space<ub>>)
  }
  return
}
