// RUN: tilelang-npu opt %s -p insert-sync | filecheck %s
// The stage runs in four of six iterations, and has four slots: none is reused, so no load waits for a slot.
// CHECK-LABEL: @ended
// CHECK-NOT:     [<PIPE_V>, <PIPE_MTE2>
// CHECK:         scf.for
// Here it runs in five iterations.
// CHECK-LABEL: @comes_round
// CHECK:         hivm.hir.wait_flag[<PIPE_V>, <PIPE_MTE2>
func.func @ended(%X: memref<64xf32, #hivm.address_space<gm>>) attributes {hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>, hivm.func_core_type = #hivm.func_core_type<AIV>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c6 = arith.constant 6 : index
  %p0 = arith.constant 0 : i64
  %p1 = arith.constant 256 : i64
  %p2 = arith.constant 512 : i64
  %p3 = arith.constant 768 : i64
  %p4 = arith.constant 1024 : i64
  %v = hivm.hir.pointer_cast(%p4) : memref<64xf32, #hivm.address_space<ub>>
  scf.for %i = %c0 to %c6 step %c1 {
    %u = hivm.hir.pointer_cast(%p0, %p1, %p2, %p3) : memref<64xf32, #hivm.address_space<ub>>
    %d = arith.cmpi slt, %i, %c4 : index
    scf.if %d {
      hivm.hir.load ins(%X : memref<64xf32, #hivm.address_space<gm>>) outs(%u : memref<64xf32, #hivm.address_space<ub>>)
      hivm.hir.vexp ins(%u : memref<64xf32, #hivm.address_space<ub>>) outs(%v : memref<64xf32, #hivm.address_space<ub>>)
    }
  }
  return
}
func.func @comes_round(%X: memref<64xf32, #hivm.address_space<gm>>) attributes {hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>, hivm.func_core_type = #hivm.func_core_type<AIV>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c6 = arith.constant 6 : index
  %p0 = arith.constant 0 : i64
  %p1 = arith.constant 256 : i64
  %p2 = arith.constant 512 : i64
  %p3 = arith.constant 768 : i64
  %p4 = arith.constant 1024 : i64
  %v = hivm.hir.pointer_cast(%p4) : memref<64xf32, #hivm.address_space<ub>>
  scf.for %i = %c0 to %c6 step %c1 {
    %u = hivm.hir.pointer_cast(%p0, %p1, %p2, %p3) : memref<64xf32, #hivm.address_space<ub>>
    %d = arith.cmpi sge, %i, %c1 : index
    scf.if %d {
      hivm.hir.load ins(%X : memref<64xf32, #hivm.address_space<gm>>) outs(%u : memref<64xf32, #hivm.address_space<ub>>)
      hivm.hir.vexp ins(%u : memref<64xf32, #hivm.address_space<ub>>) outs(%v : memref<64xf32, #hivm.address_space<ub>>)
    }
  }
  return
}
