// RUN: tilelang-npu opt %s -p insert-sync | filecheck %s
// Accesses that the author's flags order need no further event, in a loop and after it.
// CHECK-LABEL: func.func @k
// CHECK-COUNT-1: set_flag[<PIPE_MTE2>, <PIPE_V>
// CHECK-NOT:     set_flag[<PIPE_MTE2>, <PIPE_V>
// CHECK:         wait_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID3>]
// CHECK-NEXT:    hivm.hir.vadd
func.func @k(%X: memref<64xf32, #hivm.address_space<gm>>) attributes {hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>, hivm.func_core_type = #hivm.func_core_type<AIV>} {
  %c0 = arith.constant 0 : i64
  %i0 = arith.constant 0 : index
  %i1 = arith.constant 1 : index
  %i4 = arith.constant 4 : index
  %a = hivm.hir.pointer_cast(%c0) : memref<64xf32, #hivm.address_space<ub>>
  scf.for %k = %i0 to %i4 step %i1 {
    hivm.hir.load ins(%X : memref<64xf32, #hivm.address_space<gm>>) outs(%a : memref<64xf32, #hivm.address_space<ub>>)
    hivm.hir.set_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID3>]
    hivm.hir.wait_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID3>]
    hivm.hir.vadd ins(%a, %a : memref<64xf32, #hivm.address_space<ub>>, memref<64xf32, #hivm.address_space<ub>>) outs(%a : memref<64xf32, #hivm.address_space<ub>>)
  }
  return
}
