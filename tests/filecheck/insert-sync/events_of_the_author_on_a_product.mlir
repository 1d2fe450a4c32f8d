// RUN: tilelang-npu opt %s -p insert-sync | filecheck %s
// The author gave the product event 0: its id is reserved, its operand position is taken, and the wait for A precedes the
// product.
// CHECK:      hivm.hir.nd2nz
// CHECK-NEXT: hivm.hir.set_flag[<PIPE_MTE2>, <PIPE_MTE1>, <EVENT_ID1>]
// CHECK-NEXT: hivm.hir.nd2nz
// CHECK-NEXT: hivm.hir.set_flag[<PIPE_MTE2>, <PIPE_MTE1>, <EVENT_ID2>]
// CHECK-NEXT: hivm.hir.wait_flag[<PIPE_MTE2>, <PIPE_MTE1>, <EVENT_ID1>]
// CHECK-NEXT: hivm.hir.mmadL1 {{.*}} sync_related_args(%[[ZERO:.*]], %c2_i64, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} : i64
// CHECK-NOT:  flag
func.func @k(%A: memref<16x16xf16, #hivm.address_space<gm>>, %B: memref<16x16xf16, #hivm.address_space<gm>>, %c: memref<1x1x16x16xf32, #hivm.address_space<cc>>, %init: i1) attributes {hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>, hivm.func_core_type = #hivm.func_core_type<AIC>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %i0 = arith.constant 0 : i64
  %i512 = arith.constant 512 : i64
  %i1024 = arith.constant 1024 : i64
  %none = arith.constant -1 : i64
  %a = hivm.hir.pointer_cast(%i0) : memref<1x1x16x16xf16, #hivm.address_space<cbuf>>
  %b = hivm.hir.pointer_cast(%i512) : memref<1x1x16x16xf16, #hivm.address_space<cbuf>>
    hivm.hir.nd2nz {dst_continuous} ins(%A : memref<16x16xf16, #hivm.address_space<gm>>) outs(%a : memref<1x1x16x16xf16, #hivm.address_space<cbuf>>)
    hivm.hir.nd2nz {dst_continuous} ins(%B : memref<16x16xf16, #hivm.address_space<gm>>) outs(%b : memref<1x1x16x16xf16, #hivm.address_space<cbuf>>)
    hivm.hir.mmadL1 ins(%a, %b, %init, %c16, %c16, %c16 : memref<1x1x16x16xf16, #hivm.address_space<cbuf>>, memref<1x1x16x16xf16, #hivm.address_space<cbuf>>, i1, index, index, index) outs(%c : memref<1x1x16x16xf32, #hivm.address_space<cc>>) sync_related_args(%i0, %none, %none, %none, %none, %none, %none : i64, i64, i64, i64, i64, i64, i64)
  return
}
