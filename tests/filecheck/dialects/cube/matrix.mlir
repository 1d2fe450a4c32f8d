// RUN: tilelang-npu opt %s | filecheck %s
#gm = #hivm.address_space<gm>
#l1 = #hivm.address_space<cbuf>
#l0c = #hivm.address_space<cc>
!tile = memref<4x4x16x16xf16, #l1>
// CHECK-LABEL: func.func @matrix
// CHECK-NEXT:    hivm.hir.mmadL1 {b_transpose, enable_HF32} ins(%a, %b, %init, %n, %n, %n, %bias : memref<4x4x16x16xf16, #hivm.address_space<cbuf>>, memref<4x4x16x16xf16, #hivm.address_space<cbuf>>, i1, index, index, index, memref<64xf32, #hivm.address_space<cbuf>>) outs(%c : memref<4x4x16x16xf32, #hivm.address_space<cc>>) sync_related_args(%e, %e, %e, %e, %e, %e, %e : i64, i64, i64, i64, i64, i64, i64) unit_flag_mode([#hivm.unit_flag<ENABLED_WITH_UPDATE>])
// CHECK-NEXT:    hivm.hir.fixpipe {dma_mode = #hivm.dma_mode<nz2nd>, pre_quant = #hivm.fixpipe_pre_quant_mode<F322F16>} ins(%c : memref<4x4x16x16xf32, #hivm.address_space<cc>>) outs(%o : memref<64x64xf16, #hivm.address_space<gm>>) unit_flag_mode([#hivm.unit_flag<ENABLED_WITH_UPDATE>, #hivm.unit_flag<DISABLED>]) unit_flag_cond(%init, %init)
// CHECK-NEXT:    hivm.hir.fixpipe {dma_mode = #hivm.dma_mode<nz2nd>, pre_relu = #hivm.fixpipe_pre_relu_mode<NORMAL_RELU>} ins(%c : memref<4x4x16x16xf32, #hivm.address_space<cc>>) outs(%o : memref<64x64xf16, #hivm.address_space<gm>>) unit_flag_mode([#hivm.unit_flag<ENABLED_WITH_UPDATE>]) unit_flag_cond(%init)
func.func @matrix(%a: memref<4x4x16x16xf16, #l1>, %b: memref<4x4x16x16xf16, #l1>, %bias: memref<64xf32, #l1>,
                  %c: memref<4x4x16x16xf32, #l0c>, %o: memref<64x64xf16, #gm>, %init: i1, %n: index, %e: i64) {
  hivm.hir.mmadL1 {enable_HF32, b_transpose} ins(%a, %b, %init, %n, %n, %n, %bias : !tile, !tile, i1, index, index, index, memref<64xf32, #l1>) outs(%c : memref<4x4x16x16xf32, #l0c>) sync_related_args(%e, %e, %e, %e, %e, %e, %e : i64, i64, i64, i64, i64, i64, i64) unit_flag_mode([#hivm.unit_flag<ENABLED_WITH_UPDATE>])
  hivm.hir.fixpipe {pre_quant = #hivm.fixpipe_pre_quant_mode<F322F16>, dma_mode = #hivm.dma_mode<nz2nd>} ins(%c : memref<4x4x16x16xf32, #l0c>) outs(%o : memref<64x64xf16, #gm>) unit_flag_mode([#hivm.unit_flag<ENABLED_WITH_UPDATE>, #hivm.unit_flag<DISABLED>]) unit_flag_cond(%init, %init)
  // As AscendNPU-IR v1.0.0 writes it.
  hivm.hir.fixpipe {enable_nz2nd, pre_relu = #hivm.fixpipe_pre_relu_mode<NORMAL_RELU>} ins(%c : memref<4x4x16x16xf32, #l0c>) outs(%o : memref<64x64xf16, #gm>) unit_flag[<ENABLED_WITH_UPDATE>, %init]
  return
}
