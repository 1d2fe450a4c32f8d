// RUN: tilelang-npu opt %s --split-input-file --verify-diagnostics | filecheck %s
// CHECK: 'hivm.hir.vadd' op operands' shape are inconsistent
func.func @f(%a: memref<4x8xf32>, %b: memref<4x1xf32>) {
  hivm.hir.vadd ins(%a, %b : memref<4x8xf32>, memref<4x1xf32>) outs(%a : memref<4x8xf32>)
  return
}
// -----
// CHECK: 'hivm.hir.vadd' op input operand's broadcast dim is not 1
func.func @f(%a: memref<4x8xf32>, %b: memref<4x2xf32>) {
  hivm.hir.vadd ins(%a, %b : memref<4x8xf32>, memref<4x2xf32>) outs(%a : memref<4x8xf32>) broadcast = [1]
  return
}
// -----
// CHECK: 'hivm.hir.vexp' op failed to verify that operand at idx 0 and 1 should have element type 16-bit float or 32-bit float
func.func @f(%a: memref<4xi32>) {
  hivm.hir.vexp ins(%a : memref<4xi32>) outs(%a : memref<4xi32>)
  return
}
// -----
// CHECK: 'hivm.hir.vcast' op currently don't support cast int8_t_to_float_rintmode
func.func @f(%a: memref<4xi8>, %b: memref<4xf32>) {
  hivm.hir.vcast ins(%a : memref<4xi8>) outs(%b : memref<4xf32>)
  return
}
// -----
// CHECK: 'hivm.hir.vreduce' op invalid dst vector shape, 'DstVecDim[1]' != 1
func.func @f(%a: memref<4x8xf32>) {
  hivm.hir.vreduce <sum> ins(%a : memref<4x8xf32>) outs(%a : memref<4x8xf32>) reduce_dims = [1]
  return
}
// -----
// CHECK: 'hivm.hir.vtranspose' op Vtranspose only support two axes transpose
func.func @f(%a: memref<2x2x2xf32>) {
  hivm.hir.vtranspose ins(%a : memref<2x2x2xf32>) outs(%a : memref<2x2x2xf32>) permutation = [1, 2, 0]
  return
}
