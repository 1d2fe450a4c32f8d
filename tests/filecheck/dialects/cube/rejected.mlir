// RUN: tilelang-npu opt %s --split-input-file --verify-diagnostics | filecheck %s
// CHECK: 'hivm.hir.mmadL1' op sync_related_args should be empty or of size 7
func.func @f(%a: tensor<16x16xf16>, %c: tensor<16x16xf32>, %i: i1, %n: index, %e: i64) {
  %0 = hivm.hir.mmadL1 ins(%a, %a, %i, %n, %n, %n : tensor<16x16xf16>, tensor<16x16xf16>, i1, index, index, index) outs(%c : tensor<16x16xf32>) sync_related_args(%e : i64) -> tensor<16x16xf32>
  return
}
// -----
// CHECK: 'hivm.hir.fixpipe' op NZ2DN is only supported on Ascend950!
func.func @f(%a: memref<16x16xf32>, %c: memref<16x16xf32>) {
  hivm.hir.fixpipe {dma_mode = #hivm.dma_mode<nz2dn>} ins(%a : memref<16x16xf32>) outs(%c : memref<16x16xf32>)
  return
}
// -----
// CHECK: 'hivm.hir.fixpipe' op Cannot have unit-flag conditions without unit-flag modes.
func.func @f(%a: memref<16x16xf32>, %c: memref<16x16xf32>, %i: i1) {
  hivm.hir.fixpipe ins(%a : memref<16x16xf32>) outs(%c : memref<16x16xf32>) unit_flag_cond(%i)
  return
}
// -----
// CHECK: 'hivm.hir.matmul' op matrix A and matrix B must be 2D
func.func @f(%a: memref<1x16x16xf16>, %b: memref<16x16xf16>, %c: memref<16x16xf16>) {
  hivm.hir.matmul ins(%a, %b : memref<1x16x16xf16>, memref<16x16xf16>) outs(%c : memref<16x16xf16>)
  return
}
