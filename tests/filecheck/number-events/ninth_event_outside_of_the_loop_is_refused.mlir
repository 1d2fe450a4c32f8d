// RUN: tilelang-npu opt %s -p number-events --verify-diagnostics | filecheck %s
// CHECK: error[T161]: event 8 from MTE2 to V is one too many: there are 8 between two pipes
func.func @k() {
  %eight = arith.constant 8 : i64
  %low = arith.constant 0 : index
  %high = arith.constant 8 : index
  %step = arith.constant 1 : index
  hivm.hir.set_flag[<PIPE_MTE2>, <PIPE_V>, %eight]
  scf.for %i = %low to %high step %step {
    %n = arith.index_cast %i : index to i64
    hivm.hir.set_flag[<PIPE_MTE2>, <PIPE_V>, %n]
    hivm.hir.wait_flag[<PIPE_MTE2>, <PIPE_V>, %n]
  }
  hivm.hir.wait_flag[<PIPE_MTE2>, <PIPE_V>, %eight]
  return
}
