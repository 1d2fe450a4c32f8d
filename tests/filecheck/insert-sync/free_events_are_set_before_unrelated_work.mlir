// RUN: tilelang-npu opt %s -p insert-sync | filecheck %s
// The loop's first load does not depend on the vector work before the loop: its free events are set before that work, so
// that it does not wait for the load of w. The second loop loads over an operand of that work, so its free events are set
// after it.
// CHECK:      hivm.hir.load
// CHECK:      hivm.hir.set_flag[<PIPE_V>, <PIPE_MTE2>, <EVENT_ID0>]
// CHECK-NEXT: hivm.hir.wait_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID0>]
// CHECK-NEXT: hivm.hir.vrelu
// CHECK-NEXT: scf.for
// CHECK:      }
// CHECK-NEXT: hivm.hir.wait_flag[<PIPE_V>, <PIPE_MTE2>, <EVENT_ID0>]
// CHECK:      func.func @later
// CHECK:      hivm.hir.load
// CHECK:      hivm.hir.vrelu
// CHECK-NEXT: hivm.hir.set_flag[<PIPE_V>, <PIPE_MTE2>, <EVENT_ID0>]
// CHECK-NEXT: scf.for
func.func @k(%X: memref<64xf32, #hivm.address_space<gm>>, %W: memref<64xf32, #hivm.address_space<gm>>) attributes {hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>, hivm.func_core_type = #hivm.func_core_type<AIV>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %p0 = arith.constant 0 : i64
  %p1 = arith.constant 256 : i64
  %p2 = arith.constant 512 : i64
  %w = hivm.hir.pointer_cast(%p0) : memref<64xf32, #hivm.address_space<ub>>
  %v = hivm.hir.pointer_cast(%p1) : memref<64xf32, #hivm.address_space<ub>>
  %a = hivm.hir.pointer_cast(%p2) : memref<64xf32, #hivm.address_space<ub>>
  hivm.hir.load ins(%W : memref<64xf32, #hivm.address_space<gm>>) outs(%w : memref<64xf32, #hivm.address_space<ub>>)
  hivm.hir.vrelu ins(%w : memref<64xf32, #hivm.address_space<ub>>) outs(%v : memref<64xf32, #hivm.address_space<ub>>)
  scf.for %i = %c0 to %c4 step %c1 {
    hivm.hir.load ins(%X : memref<64xf32, #hivm.address_space<gm>>) outs(%a : memref<64xf32, #hivm.address_space<ub>>)
    hivm.hir.vrelu ins(%a : memref<64xf32, #hivm.address_space<ub>>) outs(%a : memref<64xf32, #hivm.address_space<ub>>)
  }
  return
}
func.func @later(%X: memref<64xf32, #hivm.address_space<gm>>, %W: memref<64xf32, #hivm.address_space<gm>>) attributes {hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>, hivm.func_core_type = #hivm.func_core_type<AIV>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %p0 = arith.constant 0 : i64
  %p1 = arith.constant 256 : i64
  %w = hivm.hir.pointer_cast(%p0) : memref<64xf32, #hivm.address_space<ub>>
  %v = hivm.hir.pointer_cast(%p1) : memref<64xf32, #hivm.address_space<ub>>
  hivm.hir.load ins(%W : memref<64xf32, #hivm.address_space<gm>>) outs(%w : memref<64xf32, #hivm.address_space<ub>>)
  hivm.hir.vrelu ins(%w : memref<64xf32, #hivm.address_space<ub>>) outs(%v : memref<64xf32, #hivm.address_space<ub>>)
  scf.for %i = %c0 to %c4 step %c1 {
    hivm.hir.load ins(%X : memref<64xf32, #hivm.address_space<gm>>) outs(%w : memref<64xf32, #hivm.address_space<ub>>)
    hivm.hir.vrelu ins(%w : memref<64xf32, #hivm.address_space<ub>>) outs(%w : memref<64xf32, #hivm.address_space<ub>>)
  }
  return
}
