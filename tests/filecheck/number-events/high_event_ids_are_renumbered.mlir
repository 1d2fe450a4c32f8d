// RUN: tilelang-npu opt %s -p number-events | filecheck %s
// Event id 10 becomes the highest id that neither its pair of pipes nor the library uses between the same pipes; another
// pair keeps its id.
// CHECK:      hivm.hir.set_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID6>]
// CHECK-NEXT: hivm.hir.set_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID0>]
// CHECK-NEXT: hivm.hir.set_flag[<PIPE_V>, <PIPE_MTE3>, <EVENT_ID7>]
// CHECK-NEXT: hivm.hir.wait_flag[<PIPE_V>, <PIPE_MTE3>, <EVENT_ID7>]
// CHECK-NEXT: hivm.hir.wait_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID0>]
// CHECK-NEXT: hivm.hir.wait_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID6>]
func.func @k() {
  %ten = arith.constant 10 : i64
  hivm.hir.set_flag[<PIPE_MTE2>, <PIPE_V>, %ten]
  hivm.hir.set_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID0>]
  hivm.hir.set_flag[<PIPE_V>, <PIPE_MTE3>, <EVENT_ID7>]
  hivm.hir.wait_flag[<PIPE_V>, <PIPE_MTE3>, <EVENT_ID7>]
  hivm.hir.wait_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID0>]
  hivm.hir.wait_flag[<PIPE_MTE2>, <PIPE_V>, %ten]
  return
}
