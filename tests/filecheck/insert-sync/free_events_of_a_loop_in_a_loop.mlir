// RUN: tilelang-npu opt %s -p insert-sync | filecheck %s
// The free events of the inner loop are set around the outer loop. An iteration of the outer loop starts after the last load
// of the previous one, so it needs no separate events, and nothing waits between its iterations, whatever the trip counts.
// CHECK:      hivm.hir.set_flag[<PIPE_V>, <PIPE_MTE2>, <EVENT_ID0>]
// CHECK-NEXT: scf.for
// CHECK-NEXT:   hivm.hir.pointer_cast
// CHECK-NEXT:   scf.for
// CHECK-NEXT:     hivm.hir.wait_flag[<PIPE_V>, <PIPE_MTE2>, <EVENT_ID0>]
// CHECK-NEXT:     hivm.hir.load
// CHECK-NEXT:     hivm.hir.set_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID0>]
// CHECK-NEXT:     hivm.hir.wait_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID0>]
// CHECK-NEXT:     hivm.hir.vrelu
// CHECK-NEXT:     hivm.hir.set_flag[<PIPE_V>, <PIPE_MTE2>, <EVENT_ID0>]
// CHECK-NEXT:   }
// CHECK-NEXT: }
// CHECK-NEXT: hivm.hir.wait_flag[<PIPE_V>, <PIPE_MTE2>, <EVENT_ID0>]
// CHECK-NEXT: return
func.func @k(%X: memref<64xf32, #hivm.address_space<gm>>, %n: index) attributes {hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>, hivm.func_core_type = #hivm.func_core_type<AIV>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %p0 = arith.constant 0 : i64
  scf.for %i = %c0 to %n step %c1 {
    %a = hivm.hir.pointer_cast(%p0) : memref<64xf32, #hivm.address_space<ub>>
    scf.for %j = %c0 to %n step %c1 {
      hivm.hir.load ins(%X : memref<64xf32, #hivm.address_space<gm>>) outs(%a : memref<64xf32, #hivm.address_space<ub>>)
      hivm.hir.vrelu ins(%a : memref<64xf32, #hivm.address_space<ub>>) outs(%a : memref<64xf32, #hivm.address_space<ub>>)
    }
  }
  return
}
