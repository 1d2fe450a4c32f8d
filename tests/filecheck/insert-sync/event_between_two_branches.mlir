// RUN: tilelang-npu opt %s -p insert-sync | filecheck %s
// The load in the second branch waits for the reader of its buffer in the first branch, and not for the end of that branch:
// the event is set there, and is waited for whether or not the second branch is taken.
// CHECK:       scf.if %d
// CHECK:         hivm.hir.vexp ins(%u
// CHECK-NEXT:    hivm.hir.set_flag[<PIPE_V>, <PIPE_MTE2>, [[ID:.*]]]
// CHECK:       } else {
// CHECK-NEXT:    hivm.hir.set_flag[<PIPE_V>, <PIPE_MTE2>, [[ID]]]
// CHECK-NEXT:  }
// CHECK-NEXT:  hivm.hir.wait_flag[<PIPE_V>, <PIPE_MTE2>, [[ID]]]
// CHECK-NEXT:  scf.if %e
func.func @early(%X: memref<64xf32, #hivm.address_space<gm>>, %n: index, %d: i1, %e: i1) attributes {hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>, hivm.func_core_type = #hivm.func_core_type<AIV>} {
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
    scf.if %e {
    hivm.hir.load ins(%X : memref<64xf32, #hivm.address_space<gm>>) outs(%u : memref<64xf32, #hivm.address_space<ub>>)
    hivm.hir.vexp ins(%u : memref<64xf32, #hivm.address_space<ub>>) outs(%x : memref<64xf32, #hivm.address_space<ub>>)
    }
  }
  return
}
