// RUN: tilelang-npu opt %s -p insert-sync | filecheck %s
// The write is in a branch, and only the store directly after it waits: set and wait are both in the branch, so that they
// balance on both paths, and the other path does not wait. If another store may run in between, they stay outside.
// CHECK:      scf.if
// CHECK-NEXT:   hivm.hir.vexp
// CHECK-NEXT:   hivm.hir.set_flag[<PIPE_V>, <PIPE_MTE3>, <EVENT_ID0>]
// CHECK-NEXT:   hivm.hir.wait_flag[<PIPE_V>, <PIPE_MTE3>, <EVENT_ID0>]
// CHECK-NEXT: }
// CHECK-NEXT: hivm.hir.store
// CHECK:      scf.if
// CHECK-NEXT:   hivm.hir.vexp
// CHECK-NEXT: }
// CHECK-NEXT: hivm.hir.set_flag[<PIPE_V>, <PIPE_MTE3>, <EVENT_ID0>]
// CHECK-NEXT: hivm.hir.store
// CHECK-NEXT: hivm.hir.wait_flag[<PIPE_V>, <PIPE_MTE3>, <EVENT_ID0>]
// CHECK-NEXT: hivm.hir.store
func.func @k(%Y: memref<64xf32, #hivm.address_space<gm>>, %Z: memref<64xf32, #hivm.address_space<gm>>, %W: memref<64xf32, #hivm.address_space<gm>>, %p: i1) attributes {hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>, hivm.func_core_type = #hivm.func_core_type<AIV>} {
  %c0 = arith.constant 0 : i64
  %a = hivm.hir.pointer_cast(%c0) : memref<64xf32, #hivm.address_space<ub>>
  scf.if %p {
    hivm.hir.vexp ins(%a : memref<64xf32, #hivm.address_space<ub>>) outs(%a : memref<64xf32, #hivm.address_space<ub>>)
  }
  hivm.hir.store ins(%a : memref<64xf32, #hivm.address_space<ub>>) outs(%Y : memref<64xf32, #hivm.address_space<gm>>)
  %c256 = arith.constant 256 : i64
  %b = hivm.hir.pointer_cast(%c256) : memref<64xf32, #hivm.address_space<ub>>
  %c512 = arith.constant 512 : i64
  %c = hivm.hir.pointer_cast(%c512) : memref<64xf32, #hivm.address_space<ub>>
  scf.if %p {
    hivm.hir.vexp ins(%b : memref<64xf32, #hivm.address_space<ub>>) outs(%b : memref<64xf32, #hivm.address_space<ub>>)
  }
  hivm.hir.store ins(%c : memref<64xf32, #hivm.address_space<ub>>) outs(%Z : memref<64xf32, #hivm.address_space<gm>>)
  hivm.hir.store ins(%b : memref<64xf32, #hivm.address_space<ub>>) outs(%W : memref<64xf32, #hivm.address_space<gm>>)
  return
}
