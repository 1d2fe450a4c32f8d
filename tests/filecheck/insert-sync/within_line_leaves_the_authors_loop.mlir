// RUN: tilelang-npu opt %s -p insert-sync{by_hand=true} | filecheck %s
// A loop of line 2 around a statement of line 3 is the author's, and so is the order of its iterations. A loop of line 5
// around a statement of line 5 comes from the expansion of this statement, so the pass orders its iterations.
// CHECK:      scf.for
// CHECK-NEXT:   hivm.hir.vexp
// CHECK-NEXT: }
// CHECK-NEXT: scf.for
// CHECK-NEXT:   hivm.hir.pipe_barrier[<PIPE_V>]
// CHECK-NEXT:   hivm.hir.vexp
// CHECK-NEXT: }
func.func @k() attributes {hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>, hivm.func_core_type = #hivm.func_core_type<AIV>} {
  %c0 = arith.constant 0 : i64
  %i0 = arith.constant 0 : index
  %i1 = arith.constant 1 : index
  %i4 = arith.constant 4 : index
  %a = hivm.hir.pointer_cast(%c0) : memref<64xf32, #hivm.address_space<ub>>
  scf.for %k = %i0 to %i4 step %i1 {
    hivm.hir.vexp ins(%a : memref<64xf32, #hivm.address_space<ub>>) outs(%a : memref<64xf32, #hivm.address_space<ub>>) loc("k.py":3:1)
  } loc("k.py":2:1)
  scf.for %k = %i0 to %i4 step %i1 {
    hivm.hir.vexp ins(%a : memref<64xf32, #hivm.address_space<ub>>) outs(%a : memref<64xf32, #hivm.address_space<ub>>) loc("k.py":5:1)
  } loc("k.py":5:1)
  return
}
