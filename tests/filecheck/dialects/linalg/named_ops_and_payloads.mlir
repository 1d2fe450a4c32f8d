// RUN: tilelang-npu opt %s | filecheck %s
// RUN: tilelang-npu opt %s --print-op-generic | tilelang-npu opt - | filecheck %s
// Named ops have no body. A body that is a single op on its arguments, the accumulator first, is printed as this op.
// CHECK:      %0 = linalg.elemwise_binary {fun = #linalg.binary_fn<add>} ins(%a, %a : tensor<8x4xf32>, tensor<8x4xf32>) outs(%a : tensor<8x4xf32>) -> tensor<8x4xf32>
// CHECK-NEXT: %1 = linalg.reduce { arith.addf } ins(%0 : tensor<8x4xf32>) outs(%b : tensor<8xf32>) dimensions = [1] {reduce}
// CHECK-NEXT: %2 = linalg.reduce ins(%0 : tensor<8x4xf32>) outs(%b : tensor<8xf32>) dimensions = [1] (%in: f32, %init: f32) {
// CHECK-NEXT: %3 = arith.maximumf %in, %init : f32
// CHECK-NEXT: linalg.yield %3 : f32
// CHECK-NEXT: }
// CHECK-NEXT: %4 = linalg.map { math.exp } ins(%0 : tensor<8x4xf32>) outs(%a : tensor<8x4xf32>)
// CHECK-NEXT: %5 = linalg.map { arith.addf } ins(%0, %a : tensor<8x4xf32>, tensor<8x4xf32>) outs(%a : tensor<8x4xf32>)
// CHECK-NEXT: %6 = linalg.matmul ins(%h, %m : tensor<8x4xf16>, tensor<4x4xf16>) outs(%a : tensor<8x4xf32>) -> tensor<8x4xf32>
// CHECK-NEXT: return %1 : tensor<8xf32>
func.func @f(%a: tensor<8x4xf32>, %b: tensor<8xf32>, %h: tensor<8x4xf16>, %m: tensor<4x4xf16>) -> tensor<8xf32> {
  %0 = linalg.elemwise_binary {fun = #linalg.binary_fn<add>} ins(%a, %a : tensor<8x4xf32>, tensor<8x4xf32>) outs(%a : tensor<8x4xf32>) -> tensor<8x4xf32>
  %1 = linalg.reduce {arith.addf} ins(%0 : tensor<8x4xf32>) outs(%b : tensor<8xf32>) dimensions = [1] {reduce}
  %2 = linalg.reduce ins(%0 : tensor<8x4xf32>) outs(%b : tensor<8xf32>) dimensions = [1]
   (%in: f32, %init: f32) {
     %6 = arith.maximumf %in, %init : f32
     linalg.yield %6 : f32
   }
  %3 = linalg.map { math.exp } ins(%0 : tensor<8x4xf32>) outs(%a : tensor<8x4xf32>)
  %5 = linalg.map { arith.addf } ins(%0, %a : tensor<8x4xf32>, tensor<8x4xf32>) outs(%a : tensor<8x4xf32>)
  %4 = linalg.matmul ins(%h, %m : tensor<8x4xf16>, tensor<4x4xf16>) outs(%a : tensor<8x4xf32>) -> tensor<8x4xf32>
  return %1 : tensor<8xf32>
}
