// RUN: tilelang-npu opt %s -p insert-sync | filecheck %s
// A fill in a branch is read after the branch: its barrier is in the branch. A result from before a branch is read in the
// branch: its barrier is in that branch. Paths that do not take these branches execute no barrier.
// CHECK:      scf.if
// CHECK-NEXT:   hivm.hir.vbrc
// CHECK-NEXT:   hivm.hir.pipe_barrier[<PIPE_V>]
// CHECK-NEXT: }
// CHECK-NEXT: hivm.hir.vexp
// CHECK-NEXT: scf.if
// CHECK-NEXT:   hivm.hir.pipe_barrier[<PIPE_V>]
// CHECK-NEXT:   hivm.hir.vexp
// CHECK-NEXT: }
// CHECK-NOT:  pipe_barrier
func.func @k(%p: i1, %q: i1) attributes {hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>, hivm.func_core_type = #hivm.func_core_type<AIV>} {
  %zero = arith.constant 0.0 : f32
  %p0 = arith.constant 0 : i64
  %p1 = arith.constant 256 : i64
  %p2 = arith.constant 512 : i64
  %a = hivm.hir.pointer_cast(%p0) : memref<64xf32, #hivm.address_space<ub>>
  %b = hivm.hir.pointer_cast(%p1) : memref<64xf32, #hivm.address_space<ub>>
  %c = hivm.hir.pointer_cast(%p2) : memref<64xf32, #hivm.address_space<ub>>
  scf.if %p {
    hivm.hir.vbrc ins(%zero : f32) outs(%a : memref<64xf32, #hivm.address_space<ub>>)
  }
  hivm.hir.vexp ins(%a : memref<64xf32, #hivm.address_space<ub>>) outs(%b : memref<64xf32, #hivm.address_space<ub>>)
  scf.if %q {
    hivm.hir.vexp ins(%b : memref<64xf32, #hivm.address_space<ub>>) outs(%c : memref<64xf32, #hivm.address_space<ub>>)
  }
  return
}
