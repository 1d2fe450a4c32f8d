// RUN: tilelang-npu opt %s -p insert-sync | filecheck %s
// The branch is not taken in the last two iterations. So two iterations follow one that takes it: the load of the second waits for what
// the branch reads of its slot, and the store of the slot for the load. The store after the loop needs no event.
// CHECK-LABEL: func.func @two_follow
// CHECK:          scf.if
// CHECK:            hivm.hir.vexp
// CHECK-NEXT:     }
// CHECK-NOT:    set_flag[<PIPE_V>, <PIPE_MTE3>
// CHECK:        return
// Where only one iteration follows, no load of the slot and no store may follow the branch.
// CHECK-LABEL: func.func @one_follows
// CHECK:        set_flag[<PIPE_V>, <PIPE_MTE3>, [[ID:.*]]]
// CHECK:        wait_flag[<PIPE_V>, <PIPE_MTE3>, [[ID]]]
// CHECK-NEXT:   hivm.hir.store ins(%u
func.func @two_follow(%X: memref<64xf32, #hivm.address_space<gm>>, %Y: memref<64xf32, #hivm.address_space<gm>>, %Z: memref<64xf32, #hivm.address_space<gm>>, %n: index) attributes {hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>, hivm.func_core_type = #hivm.func_core_type<AIV>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %p0 = arith.constant 0 : i64
  %p1 = arith.constant 256 : i64
  %p2 = arith.constant 512 : i64
  %u = hivm.hir.pointer_cast(%p2) : memref<64xf32, #hivm.address_space<ub>>
  %end = arith.subi %n, %c2 : index
  scf.for %i = %c0 to %n step %c1 {
    %a = hivm.hir.pointer_cast(%p0, %p1) : memref<64xf32, #hivm.address_space<ub>>
    hivm.hir.load ins(%X : memref<64xf32, #hivm.address_space<gm>>) outs(%a : memref<64xf32, #hivm.address_space<ub>>)
    hivm.hir.store ins(%a : memref<64xf32, #hivm.address_space<ub>>) outs(%Y : memref<64xf32, #hivm.address_space<gm>>)
    %taken = arith.cmpi slt, %i, %end : index
    scf.if %taken {
      hivm.hir.vexp ins(%a : memref<64xf32, #hivm.address_space<ub>>) outs(%u : memref<64xf32, #hivm.address_space<ub>>)
    }
  }
  hivm.hir.store ins(%u : memref<64xf32, #hivm.address_space<ub>>) outs(%Z : memref<64xf32, #hivm.address_space<gm>>)
  return
}
func.func @one_follows(%X: memref<64xf32, #hivm.address_space<gm>>, %Y: memref<64xf32, #hivm.address_space<gm>>, %Z: memref<64xf32, #hivm.address_space<gm>>, %n: index) attributes {hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>, hivm.func_core_type = #hivm.func_core_type<AIV>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %p0 = arith.constant 0 : i64
  %p1 = arith.constant 256 : i64
  %p2 = arith.constant 512 : i64
  %u = hivm.hir.pointer_cast(%p2) : memref<64xf32, #hivm.address_space<ub>>
  %end = arith.subi %n, %c1 : index
  scf.for %i = %c0 to %n step %c1 {
    %a = hivm.hir.pointer_cast(%p0, %p1) : memref<64xf32, #hivm.address_space<ub>>
    hivm.hir.load ins(%X : memref<64xf32, #hivm.address_space<gm>>) outs(%a : memref<64xf32, #hivm.address_space<ub>>)
    hivm.hir.store ins(%a : memref<64xf32, #hivm.address_space<ub>>) outs(%Y : memref<64xf32, #hivm.address_space<gm>>)
    %taken = arith.cmpi slt, %i, %end : index
    scf.if %taken {
      hivm.hir.vexp ins(%a : memref<64xf32, #hivm.address_space<ub>>) outs(%u : memref<64xf32, #hivm.address_space<ub>>)
    }
  }
  hivm.hir.store ins(%u : memref<64xf32, #hivm.address_space<ub>>) outs(%Z : memref<64xf32, #hivm.address_space<gm>>)
  return
}
