// RUN: tilelang-npu opt %s | filecheck %s
// CHECK-LABEL: func.func @shape
// CHECK-NEXT:    %[[FILLED:.*]] = hivm.hir.vbrc ins(%s : f32) outs(%a : tensor<4x8xf32>) -> tensor<4x8xf32>
// CHECK-NEXT:    %[[ROWS:.*]] = hivm.hir.vreduce <sum> ins(%[[FILLED]] : tensor<4x8xf32>) outs(%r : tensor<4x1xf32>) reduce_dims = [1] -> tensor<4x1xf32>
// CHECK-NEXT:    %{{.*}} = hivm.hir.vbrc ins(%[[ROWS]] : tensor<4x1xf32>) outs(%a : tensor<4x8xf32>) broadcast_dims = [1] -> tensor<4x8xf32>
// CHECK-NEXT:    %{{.*}}, %{{.*}} = hivm.hir.vreduce <max_with_index_left> ins(%a : tensor<4x8xf32>) outs(%r, %k : tensor<4x1xf32>, tensor<4x1xi32>) reduce_dims = [1] -> tensor<4x1xf32>, tensor<4x1xi32>
// CHECK-NEXT:    %{{.*}} = hivm.hir.vtranspose ins(%a : tensor<4x8xf32>) outs(%c : tensor<8x4xf32>) permutation = [1, 0] -> tensor<8x4xf32>
// CHECK-NEXT:    %{{.*}} = hivm.hir.varange offset[%n] strides[%n, %n] outs(%a : tensor<4x8xf32>) -> tensor<4x8xf32>
// CHECK-NEXT:    %{{.*}} = hivm.hir.vcumsum ins(%a : tensor<4x8xf32>) outs(%a : tensor<4x8xf32>) cum_dims = [1] reverse = false -> tensor<4x8xf32>
// CHECK-NEXT:    %{{.*}} = hivm.hir.vpad ins(%a : tensor<4x8xf32>) outs(%b : tensor<?x16xf32>) low[%n, 0] high[0, 8] pad_value %s : f32 -> tensor<?x16xf32>
// CHECK-NEXT:    %{{.*}} = hivm.hir.vsort ins(%a : tensor<4x8xf32>) outs(%a : tensor<4x8xf32>) descending = true sort_axis = 1 -> tensor<4x8xf32>
func.func @shape(%s: f32, %a: tensor<4x8xf32>, %r: tensor<4x1xf32>, %k: tensor<4x1xi32>, %c: tensor<8x4xf32>, %b: tensor<?x16xf32>, %n: index) {
  %0 = hivm.hir.vbrc ins(%s : f32) outs(%a : tensor<4x8xf32>) -> tensor<4x8xf32>
  %1 = hivm.hir.vreduce <sum> ins(%0 : tensor<4x8xf32>) outs(%r : tensor<4x1xf32>) unsigned_src = false reduce_dims = [1] -> tensor<4x1xf32>
  %2 = hivm.hir.vbrc ins(%1 : tensor<4x1xf32>) outs(%a : tensor<4x8xf32>) broadcast_dims = [1] -> tensor<4x8xf32>
  %3:2 = hivm.hir.vreduce <max_with_index_left> ins(%a : tensor<4x8xf32>) outs(%r, %k : tensor<4x1xf32>, tensor<4x1xi32>) reduce_dims = [1] -> tensor<4x1xf32>, tensor<4x1xi32>
  %4 = hivm.hir.vtranspose ins(%a : tensor<4x8xf32>) outs(%c : tensor<8x4xf32>) permutation = [1, 0] -> tensor<8x4xf32>
  %5 = hivm.hir.varange offset[%n] strides[%n, %n] outs(%a : tensor<4x8xf32>) -> tensor<4x8xf32>
  %6 = hivm.hir.vcumsum ins(%a : tensor<4x8xf32>) outs(%a : tensor<4x8xf32>) cum_dims = [1] reverse = false -> tensor<4x8xf32>
  %7 = hivm.hir.vpad ins(%a : tensor<4x8xf32>) outs(%b : tensor<?x16xf32>) low[%n, 0] high[0, 8] pad_value %s : f32 -> tensor<?x16xf32>
  %8 = hivm.hir.vsort ins(%a : tensor<4x8xf32>) outs(%a : tensor<4x8xf32>) descending = true sort_axis = 1 -> tensor<4x8xf32>
  return
}
