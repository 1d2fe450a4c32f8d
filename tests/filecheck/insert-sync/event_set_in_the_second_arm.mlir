// RUN: tilelang-npu opt %s -p insert-sync | filecheck %s
// The load after the branch waits for the reader of %u in the second arm, where the event is set before the rest of the arm.
// The first arm sets it at once; the event that is set and waited for within that arm is outstanding at the same time, and
// has another id.
// CHECK:       scf.if
// CHECK-NEXT:    hivm.hir.set_flag[<PIPE_V>, <PIPE_MTE2>, [[BEHIND:<EVENT_ID.>]]]
// CHECK-NOT:     [[BEHIND]]
// CHECK:         hivm.hir.wait_flag[<PIPE_V>, <PIPE_MTE2>, [[INSIDE:<EVENT_ID.>]]]
// CHECK-NEXT:    hivm.hir.load
// CHECK:       } else {
// CHECK:         hivm.hir.vexp ins(%u
// CHECK-NEXT:    hivm.hir.set_flag[<PIPE_V>, <PIPE_MTE2>, [[BEHIND]]]
// CHECK:         hivm.hir.vexp ins(%v
// CHECK-NOT:     set_flag
// CHECK:       }
// CHECK-NEXT:  hivm.hir.wait_flag[<PIPE_V>, <PIPE_MTE2>, [[BEHIND]]]
// CHECK-NEXT:  hivm.hir.load
func.func @k(%X: memref<64xf32, #hivm.address_space<gm>>, %d: i1) attributes {hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>, hivm.func_core_type = #hivm.func_core_type<AIV>} {
  %p0 = arith.constant 0 : i64
  %p1 = arith.constant 256 : i64
  %p2 = arith.constant 512 : i64
  %p3 = arith.constant 768 : i64
  %u = hivm.hir.pointer_cast(%p0) : memref<64xf32, #hivm.address_space<ub>>
  %v = hivm.hir.pointer_cast(%p1) : memref<64xf32, #hivm.address_space<ub>>
  %w = hivm.hir.pointer_cast(%p2) : memref<64xf32, #hivm.address_space<ub>>
  %x = hivm.hir.pointer_cast(%p3) : memref<64xf32, #hivm.address_space<ub>>
  %p4 = arith.constant 1024 : i64
  %y = hivm.hir.pointer_cast(%p4) : memref<64xf32, #hivm.address_space<ub>>
  hivm.hir.load ins(%X : memref<64xf32, #hivm.address_space<gm>>) outs(%u : memref<64xf32, #hivm.address_space<ub>>)
  hivm.hir.vexp ins(%u : memref<64xf32, #hivm.address_space<ub>>) outs(%x : memref<64xf32, #hivm.address_space<ub>>)
  scf.if %d {
    hivm.hir.load ins(%X : memref<64xf32, #hivm.address_space<gm>>) outs(%u : memref<64xf32, #hivm.address_space<ub>>)
  } else {
    hivm.hir.vexp ins(%u : memref<64xf32, #hivm.address_space<ub>>) outs(%v : memref<64xf32, #hivm.address_space<ub>>)
    hivm.hir.vexp ins(%v : memref<64xf32, #hivm.address_space<ub>>) outs(%w : memref<64xf32, #hivm.address_space<ub>>)
  }
  hivm.hir.load ins(%X : memref<64xf32, #hivm.address_space<gm>>) outs(%u : memref<64xf32, #hivm.address_space<ub>>)
  hivm.hir.vexp ins(%u : memref<64xf32, #hivm.address_space<ub>>) outs(%y : memref<64xf32, #hivm.address_space<ub>>)
  return
}
