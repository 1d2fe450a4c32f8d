// RUN: tilelang-npu opt %s -p insert-sync | filecheck %s
// A flag that is set in a branch may not be set, so it orders nothing outside of the branch.
// CHECK-LABEL: func.func @k
// CHECK: hivm.hir.load
// CHECK-NEXT: hivm.hir.set_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID1>]
// CHECK: scf.if
// CHECK-NEXT: set_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID0>]
// CHECK: wait_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID1>]
// CHECK: hivm.hir.vadd
func.func @k(%X: memref<64xf32, #hivm.address_space<gm>>, %n: i32) attributes {hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>, hivm.func_core_type = #hivm.func_core_type<AIV>} {
  %c0 = arith.constant 0 : i64
  %z = arith.constant 0 : i32
  %t = arith.cmpi eq, %n, %z : i32
  %a = hivm.hir.pointer_cast(%c0) : memref<64xf32, #hivm.address_space<ub>>
  hivm.hir.load ins(%X : memref<64xf32, #hivm.address_space<gm>>) outs(%a : memref<64xf32, #hivm.address_space<ub>>)
  scf.if %t {
    hivm.hir.set_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID0>]
    hivm.hir.wait_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID0>]
  }
  hivm.hir.vadd ins(%a, %a : memref<64xf32, #hivm.address_space<ub>>, memref<64xf32, #hivm.address_space<ub>>) outs(%a : memref<64xf32, #hivm.address_space<ub>>)
  return
}
