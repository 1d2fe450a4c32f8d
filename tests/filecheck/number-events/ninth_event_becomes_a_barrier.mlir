// RUN: tilelang-npu opt %s -p number-events | filecheck %s
// The loop uses all eight event ids alternately, so a set that its wait follows directly becomes a barrier.
// CHECK:      hivm.hir.pipe_barrier[<PIPE_ALL>]
// CHECK-NOT:  hivm.hir.wait_flag[<PIPE_MTE2>, <PIPE_V>, %ten]
// CHECK:      scf.for
func.func @k() {
  %ten = arith.constant 10 : i64
  %low = arith.constant 0 : index
  %high = arith.constant 8 : index
  %step = arith.constant 1 : index
  hivm.hir.set_flag[<PIPE_MTE2>, <PIPE_V>, %ten]
  hivm.hir.wait_flag[<PIPE_MTE2>, <PIPE_V>, %ten]
  scf.for %i = %low to %high step %step {
    %n = arith.index_cast %i : index to i64
    hivm.hir.set_flag[<PIPE_MTE2>, <PIPE_V>, %n]
    hivm.hir.wait_flag[<PIPE_MTE2>, <PIPE_V>, %n]
  }
  return
}
