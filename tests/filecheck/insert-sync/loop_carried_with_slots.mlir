// RUN: tilelang-npu opt %s -p insert-sync | filecheck %s
// Two slots: two free events are set before the loop, each iteration waits for one and sets it again, alternately, and both
// are waited for after the loop.
// CHECK:      hivm.hir.set_flag[<PIPE_V>, <PIPE_MTE2>, <EVENT_ID0>]
// CHECK-NEXT: hivm.hir.set_flag[<PIPE_V>, <PIPE_MTE2>, <EVENT_ID1>]
// CHECK-NEXT: scf.for
// CHECK:        %[[TURN:.*]] = arith.index_cast
// CHECK:        hivm.hir.wait_flag[<PIPE_V>, <PIPE_MTE2>, %[[TURN]]]
// CHECK-NEXT:   hivm.hir.load
// CHECK-NEXT:   hivm.hir.set_flag[<PIPE_MTE2>, <PIPE_V>, %[[TURN]]]
// CHECK-NEXT:   hivm.hir.wait_flag[<PIPE_MTE2>, <PIPE_V>, %[[TURN]]]
// CHECK-NEXT:   hivm.hir.vrelu
// CHECK-NEXT:   hivm.hir.set_flag[<PIPE_V>, <PIPE_MTE2>, %[[TURN]]]
// CHECK-NEXT: }
// CHECK-NEXT: hivm.hir.wait_flag[<PIPE_V>, <PIPE_MTE2>, <EVENT_ID0>]
// CHECK-NEXT: hivm.hir.wait_flag[<PIPE_V>, <PIPE_MTE2>, <EVENT_ID1>]
func.func @k(%X: memref<64xf32, #hivm.address_space<gm>>) attributes {hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>, hivm.func_core_type = #hivm.func_core_type<AIV>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %p0 = arith.constant 0 : i64
  %p1 = arith.constant 256 : i64
  scf.for %i = %c0 to %c4 step %c1 {
    %a = hivm.hir.pointer_cast(%p0, %p1) : memref<64xf32, #hivm.address_space<ub>>
    hivm.hir.load ins(%X : memref<64xf32, #hivm.address_space<gm>>) outs(%a : memref<64xf32, #hivm.address_space<ub>>)
    hivm.hir.vrelu ins(%a : memref<64xf32, #hivm.address_space<ub>>) outs(%a : memref<64xf32, #hivm.address_space<ub>>)
  }
  return
}
