// RUN: tilelang-npu opt %s | filecheck %s
// Attributes are parsed stripped, in full and by alias; a computed event number takes the place of the event attribute.
#v = #hivm.pipe<PIPE_V>
// CHECK-LABEL: func.func @events(%event: i64)
// CHECK-NEXT:    hivm.hir.set_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID0>]
// CHECK-NEXT:    hivm.hir.wait_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID0>]
// CHECK-NEXT:    hivm.hir.set_flag[<PIPE_V>, <PIPE_MTE3>, %event]
// CHECK-NEXT:    hivm.hir.wait_flag[<PIPE_V>, <PIPE_MTE3>, %event]
// CHECK-NEXT:    hivm.hir.pipe_barrier[<PIPE_ALL>]
func.func @events(%event: i64) {
  hivm.hir.set_flag[#hivm.pipe<PIPE_MTE2>, #v, <EVENT_ID0>]
  hivm.hir.wait_flag[<PIPE_MTE2>, <PIPE_V>, #hivm.event<EVENT_ID0>]
  hivm.hir.set_flag[<PIPE_V>, <PIPE_MTE3>, %event]
  "hivm.hir.wait_flag"(%event) <{set_pipe = #v, wait_pipe = #hivm.pipe<PIPE_MTE3>}> : (i64) -> ()
  hivm.hir.pipe_barrier[<PIPE_ALL>]
  return
}
