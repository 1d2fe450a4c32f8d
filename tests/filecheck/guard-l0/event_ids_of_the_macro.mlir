// RUN: tilelang-npu opt %s -p guard-l0 | filecheck %s
// Both halves of L0 are free before and after the loop; the macro gets the iteration and the two event ids.
// CHECK:      hivm.hir.set_flag[<PIPE_M>, <PIPE_MTE1>, <EVENT_ID0>]
// CHECK-NEXT: hivm.hir.set_flag[<PIPE_M>, <PIPE_MTE1>, <EVENT_ID1>]
// CHECK-NEXT: scf.for %[[K:.*]] =
// CHECK:        %[[TURN:.*]] = arith.index_cast %[[K]] : index to i64
// CHECK-NEXT:   hivm.hir.mmadL1 {{.*}} sync_related_args(%cm1_i64, %cm1_i64, %cm1_i64, %cm1_i64, %[[TURN]], %c0_i64, %c1_i64
// CHECK-NEXT: }
// CHECK-NEXT: hivm.hir.wait_flag[<PIPE_M>, <PIPE_MTE1>, <EVENT_ID0>]
// CHECK-NEXT: hivm.hir.wait_flag[<PIPE_M>, <PIPE_MTE1>, <EVENT_ID1>]
func.func @k(%a: memref<1x1x16x16xf16, #hivm.address_space<cbuf>>, %c: memref<1x1x16x16xf32, #hivm.address_space<cc>>, %init: i1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  scf.for %k = %c0 to %c16 step %c1 {
    hivm.hir.mmadL1 ins(%a, %a, %init, %c16, %c16, %c16 : memref<1x1x16x16xf16, #hivm.address_space<cbuf>>, memref<1x1x16x16xf16, #hivm.address_space<cbuf>>, i1, index, index, index) outs(%c : memref<1x1x16x16xf32, #hivm.address_space<cc>>)
  }
  return
}
