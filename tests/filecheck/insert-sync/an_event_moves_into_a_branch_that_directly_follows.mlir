// RUN: tilelang-npu opt %s -p insert-sync | filecheck %s
// The branch alone waits for the result that it stores. Set at the start of the branch, the event would wait for the other result too.
// CHECK-LABEL: func.func @work_between
// CHECK:         hivm.hir.vexp
// CHECK-NEXT:    hivm.hir.set_flag[<PIPE_V>, <PIPE_MTE3>, [[ID:.*]]]
// CHECK-NEXT:    hivm.hir.vln
// CHECK-NEXT:    hivm.hir.wait_flag[<PIPE_V>, <PIPE_MTE3>, [[ID]]]
// CHECK-NEXT:    scf.if
// CHECK-NEXT:      hivm.hir.store
// Without other work in between, nothing is set or waited for if the branch is not taken.
// CHECK-LABEL: func.func @nothing_between
// CHECK:         hivm.hir.vln
// CHECK-NEXT:    hivm.hir.vexp
// CHECK-NEXT:    scf.if
// CHECK-NEXT:      hivm.hir.set_flag[<PIPE_V>, <PIPE_MTE3>, [[ID:.*]]]
// CHECK-NEXT:      hivm.hir.wait_flag[<PIPE_V>, <PIPE_MTE3>, [[ID]]]
// CHECK-NEXT:      hivm.hir.store
func.func @work_between(%X: memref<64xf32, #hivm.address_space<gm>>, %d: i1) attributes {hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>, hivm.func_core_type = #hivm.func_core_type<AIV>} {
  %p0 = arith.constant 0 : i64
  %p1 = arith.constant 256 : i64
  %p2 = arith.constant 512 : i64
  %a = hivm.hir.pointer_cast(%p0) : memref<64xf32, #hivm.address_space<ub>>
  %b = hivm.hir.pointer_cast(%p1) : memref<64xf32, #hivm.address_space<ub>>
  %c = hivm.hir.pointer_cast(%p2) : memref<64xf32, #hivm.address_space<ub>>
  hivm.hir.vexp ins(%a : memref<64xf32, #hivm.address_space<ub>>) outs(%b : memref<64xf32, #hivm.address_space<ub>>)
  hivm.hir.vln ins(%a : memref<64xf32, #hivm.address_space<ub>>) outs(%c : memref<64xf32, #hivm.address_space<ub>>)
  scf.if %d {
    hivm.hir.store ins(%b : memref<64xf32, #hivm.address_space<ub>>) outs(%X : memref<64xf32, #hivm.address_space<gm>>)
  }
  return
}
func.func @nothing_between(%X: memref<64xf32, #hivm.address_space<gm>>, %d: i1) attributes {hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>, hivm.func_core_type = #hivm.func_core_type<AIV>} {
  %p0 = arith.constant 0 : i64
  %p1 = arith.constant 256 : i64
  %p2 = arith.constant 512 : i64
  %a = hivm.hir.pointer_cast(%p0) : memref<64xf32, #hivm.address_space<ub>>
  %b = hivm.hir.pointer_cast(%p1) : memref<64xf32, #hivm.address_space<ub>>
  %c = hivm.hir.pointer_cast(%p2) : memref<64xf32, #hivm.address_space<ub>>
  hivm.hir.vln ins(%a : memref<64xf32, #hivm.address_space<ub>>) outs(%c : memref<64xf32, #hivm.address_space<ub>>)
  hivm.hir.vexp ins(%a : memref<64xf32, #hivm.address_space<ub>>) outs(%b : memref<64xf32, #hivm.address_space<ub>>)
  scf.if %d {
    hivm.hir.store ins(%b : memref<64xf32, #hivm.address_space<ub>>) outs(%X : memref<64xf32, #hivm.address_space<gm>>)
  }
  return
}
