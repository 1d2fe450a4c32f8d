// RUN: tilelang-npu opt %s -p guard-l0 | filecheck %s
// The pass does not use an event id of the author's flags for a half of L0.
// CHECK:      hivm.hir.set_flag[<PIPE_M>, <PIPE_MTE1>, <EVENT_ID0>]
// CHECK-NEXT: hivm.hir.set_flag[<PIPE_M>, <PIPE_MTE1>, <EVENT_ID2>]
// CHECK-NEXT: scf.for
// CHECK:        sync_related_args({{.*}}, %c0_i64, %c2_i64
// CHECK:        hivm.hir.set_flag[<PIPE_M>, <PIPE_MTE1>, <EVENT_ID1>]
// CHECK:      hivm.hir.wait_flag[<PIPE_M>, <PIPE_MTE1>, <EVENT_ID0>]
// CHECK-NEXT: hivm.hir.wait_flag[<PIPE_M>, <PIPE_MTE1>, <EVENT_ID2>]
func.func @k(%a: memref<1x1x16x16xf16, #hivm.address_space<cbuf>>, %c: memref<1x1x16x16xf32, #hivm.address_space<cc>>, %init: i1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  scf.for %k = %c0 to %c16 step %c1 {
    hivm.hir.mmadL1 ins(%a, %a, %init, %c16, %c16, %c16 : memref<1x1x16x16xf16, #hivm.address_space<cbuf>>, memref<1x1x16x16xf16, #hivm.address_space<cbuf>>, i1, index, index, index) outs(%c : memref<1x1x16x16xf32, #hivm.address_space<cc>>)
    hivm.hir.set_flag[<PIPE_M>, <PIPE_MTE1>, <EVENT_ID1>]
    hivm.hir.wait_flag[<PIPE_M>, <PIPE_MTE1>, <EVENT_ID1>]
  }
  return
}
