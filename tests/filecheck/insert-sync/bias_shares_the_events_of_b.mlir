// RUN: tilelang-npu opt %s -p insert-sync | filecheck %s
// The bias has no separate events: the event of B covers its load, and the bias buffer is free after the product.
// CHECK:      scf.for
// CHECK-NEXT:   hivm.hir.wait_flag[<PIPE_MTE1>, <PIPE_MTE2>, <EVENT_ID0>]
// CHECK-NEXT:   hivm.hir.load
// CHECK-NEXT:   hivm.hir.set_flag[<PIPE_MTE2>, <PIPE_MTE1>, <EVENT_ID0>]
// CHECK-NEXT:   hivm.hir.mmadL1 {{.*}} sync_related_args(%cm1_i64, %c0_i64, %cm1_i64, %cm1_i64,
// CHECK-NEXT:   hivm.hir.set_flag[<PIPE_MTE1>, <PIPE_MTE2>, <EVENT_ID0>]
// CHECK-NEXT: }
func.func @k(%A: memref<16xf32, #hivm.address_space<gm>>, %c: memref<1x1x16x16xf32, #hivm.address_space<cc>>, %init: i1) attributes {hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>, hivm.func_core_type = #hivm.func_core_type<AIC>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %i0 = arith.constant 0 : i64
  %i512 = arith.constant 512 : i64
  %i1024 = arith.constant 1024 : i64
  %a = hivm.hir.pointer_cast(%i0) : memref<1x1x16x16xf16, #hivm.address_space<cbuf>>
  %b = hivm.hir.pointer_cast(%i512) : memref<1x1x16x16xf16, #hivm.address_space<cbuf>>
  %bias = hivm.hir.pointer_cast(%i1024) : memref<16xf32, #hivm.address_space<cbuf>>
  scf.for %k = %c0 to %c16 step %c1 {
    hivm.hir.load ins(%A : memref<16xf32, #hivm.address_space<gm>>) outs(%bias : memref<16xf32, #hivm.address_space<cbuf>>)
    hivm.hir.mmadL1 ins(%a, %b, %init, %c16, %c16, %c16, %bias : memref<1x1x16x16xf16, #hivm.address_space<cbuf>>, memref<1x1x16x16xf16, #hivm.address_space<cbuf>>, i1, index, index, index, memref<16xf32, #hivm.address_space<cbuf>>) outs(%c : memref<1x1x16x16xf32, #hivm.address_space<cc>>)
  }
  return
}
