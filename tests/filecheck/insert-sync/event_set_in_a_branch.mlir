// RUN: tilelang-npu opt %s -p insert-sync | filecheck %s
// The load after the branch waits for the reader of its buffer in the branch, and not for the end of the branch. If the
// branch is not taken, the event is set at once, so every iteration sets it once.
// CHECK-LABEL: @early
// CHECK:       scf.if
// CHECK:         hivm.hir.vexp ins(%u
// CHECK-NEXT:    hivm.hir.set_flag[<PIPE_V>, <PIPE_MTE2>, [[ID:.*]]]
// CHECK:         hivm.hir.vexp ins(%v
// CHECK:       } else {
// CHECK-NEXT:    hivm.hir.set_flag[<PIPE_V>, <PIPE_MTE2>, [[ID]]]
// CHECK-NEXT:  }
// CHECK-NEXT:  hivm.hir.wait_flag[<PIPE_V>, <PIPE_MTE2>, [[ID]]]
// CHECK-NEXT:  hivm.hir.load
// Here it waits for the last operation of the branch, so the event is set after the branch.
// CHECK-LABEL: @late
// CHECK:       scf.if
// CHECK:         hivm.hir.vexp ins(%u
// CHECK-NEXT:  }
// CHECK-NEXT:  hivm.hir.set_flag[<PIPE_V>, <PIPE_MTE2>
func.func @early(%X: memref<64xf32, #hivm.address_space<gm>>, %n: index, %d: i1) attributes {hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>, hivm.func_core_type = #hivm.func_core_type<AIV>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %p0 = arith.constant 0 : i64
  %p1 = arith.constant 256 : i64
  %p2 = arith.constant 512 : i64
  %u = hivm.hir.pointer_cast(%p0) : memref<64xf32, #hivm.address_space<ub>>
  %v = hivm.hir.pointer_cast(%p1) : memref<64xf32, #hivm.address_space<ub>>
  %w = hivm.hir.pointer_cast(%p2) : memref<64xf32, #hivm.address_space<ub>>
  %p3 = arith.constant 768 : i64
  %x = hivm.hir.pointer_cast(%p3) : memref<64xf32, #hivm.address_space<ub>>
  scf.for %i = %c0 to %n step %c1 {
    scf.if %d {
      hivm.hir.vexp ins(%u : memref<64xf32, #hivm.address_space<ub>>) outs(%v : memref<64xf32, #hivm.address_space<ub>>)
      hivm.hir.vexp ins(%v : memref<64xf32, #hivm.address_space<ub>>) outs(%w : memref<64xf32, #hivm.address_space<ub>>)
    }
    hivm.hir.load ins(%X : memref<64xf32, #hivm.address_space<gm>>) outs(%u : memref<64xf32, #hivm.address_space<ub>>)
    hivm.hir.vexp ins(%u : memref<64xf32, #hivm.address_space<ub>>) outs(%x : memref<64xf32, #hivm.address_space<ub>>)
  }
  return
}
func.func @late(%X: memref<64xf32, #hivm.address_space<gm>>, %n: index, %d: i1) attributes {hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>, hivm.func_core_type = #hivm.func_core_type<AIV>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %p0 = arith.constant 0 : i64
  %p1 = arith.constant 256 : i64
  %p2 = arith.constant 512 : i64
  %u = hivm.hir.pointer_cast(%p0) : memref<64xf32, #hivm.address_space<ub>>
  %v = hivm.hir.pointer_cast(%p1) : memref<64xf32, #hivm.address_space<ub>>
  %w = hivm.hir.pointer_cast(%p2) : memref<64xf32, #hivm.address_space<ub>>
  %p3 = arith.constant 768 : i64
  %x = hivm.hir.pointer_cast(%p3) : memref<64xf32, #hivm.address_space<ub>>
  scf.for %i = %c0 to %n step %c1 {
    scf.if %d {
      hivm.hir.vexp ins(%v : memref<64xf32, #hivm.address_space<ub>>) outs(%w : memref<64xf32, #hivm.address_space<ub>>)
      hivm.hir.vexp ins(%u : memref<64xf32, #hivm.address_space<ub>>) outs(%v : memref<64xf32, #hivm.address_space<ub>>)
    }
    hivm.hir.load ins(%X : memref<64xf32, #hivm.address_space<gm>>) outs(%u : memref<64xf32, #hivm.address_space<ub>>)
    hivm.hir.vexp ins(%u : memref<64xf32, #hivm.address_space<ub>>) outs(%x : memref<64xf32, #hivm.address_space<ub>>)
  }
  return
}
