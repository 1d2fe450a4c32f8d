// RUN: tilelang-npu opt %s | filecheck %s
// RUN: tilelang-npu opt %s --print-op-generic | tilelang-npu opt - | filecheck %s
// Ops with destinations, functions of tensors, and ops with special assembly, in the custom form and parsed from the generic
// form.
// CHECK:      %c1 = arith.constant 1 : index
// CHECK-NEXT: %0 = hfusion.elemwise_unary {fun = #hfusion.unary_fn<rsqrt>} ins(%a : tensor<8xf32>) outs(%a : tensor<8xf32>) -> tensor<8xf32>
// CHECK-NEXT: hfusion.elemwise_unary {fun = #hfusion.unary_fn<relu>} ins(%m : memref<8xf32>) outs(%m : memref<8xf32>)
// CHECK-NEXT: %1 = hfusion.cast {round_mode = #hfusion.round_mode<rint>} ins(%a : tensor<8xf32>) outs(%a : tensor<8xf32>) -> tensor<8xf32>
// CHECK-NEXT: %2 = hfusion.deinterleave %a channel<0> : tensor<8xf32> -> tensor<4xf32>
// CHECK-NEXT: %l, %h = hfusion.mulext %w, %w : tensor<8xi32>
// CHECK-NEXT: %c = hfusion.cumsum %a : tensor<8xf32> cum_dims = [0] reverse = false -> tensor<8xf32>
// CHECK-NEXT: %s = hfusion.sort ins(%a : tensor<8xf32>) descending = true sort_axis = 0 -> tensor<8xf32>
// CHECK-NEXT: hfusion.print " x0: " {hex = false} %a : tensor<8xf32>
// CHECK-NEXT: hfusion.barrier
// CHECK-NEXT: %sd = hfusion.symbolic_dim @S0 : index
// CHECK-NEXT: %v, %v_1 = hfusion.reduce_with_index {tie_break_left = true, unsigned_src = false} <max> ins(%a, %a : tensor<8xf32>, tensor<8xf32>) outs(%z, %z : tensor<f32>, tensor<f32>) dimensions = [0] -> tensor<f32>, tensor<f32>
// CHECK-NEXT: %r = hfusion.arange offset[%c1] strides[%c1] outs(%a : tensor<8xf32>) -> tensor<8xf32>
// CHECK-NEXT: %fl = hfusion.flip %a : tensor<8xf32> flip_axis = 1 -> tensor<8xf32>
// CHECK-NEXT: %hh = hfusion.histogram %w, 4, %mask : tensor<8xi32>, tensor<8xi1> -> tensor<4xi32>
// CHECK-NEXT: %in = hfusion.isnan %a : tensor<8xf32> -> tensor<8xi1>
// CHECK-NEXT: %i = hfusion.interleave %a, %a : tensor<8xf32>, tensor<8xf32> -> tensor<16xf32>
// CHECK-NEXT: return %0 : tensor<8xf32>
func.func @f(%a: tensor<8xf32>, %m: memref<8xf32>, %mask: tensor<8xi1>, %w: tensor<8xi32>, %z: tensor<f32>) -> tensor<8xf32> {
  %c1 = arith.constant 1 : index
  %0 = hfusion.elemwise_unary {fun = #hfusion.unary_fn<rsqrt>} ins(%a : tensor<8xf32>) outs(%a : tensor<8xf32>) -> tensor<8xf32>
  hfusion.elemwise_unary {fun = #hfusion.unary_fn<relu>} ins(%m : memref<8xf32>) outs(%m : memref<8xf32>)
  %1 = hfusion.cast {round_mode = #hfusion.round_mode<rint>} ins(%a : tensor<8xf32>) outs(%a : tensor<8xf32>) -> tensor<8xf32>
  %2 = hfusion.deinterleave %a channel<0> : tensor<8xf32> -> tensor<4xf32>
  %l, %h = hfusion.mulext %w, %w : tensor<8xi32>
  %c = hfusion.cumsum %a : tensor<8xf32> cum_dims = [0] reverse = false -> tensor<8xf32>
  %s = hfusion.sort ins(%a : tensor<8xf32>) descending = true sort_axis = 0 -> tensor<8xf32>
  hfusion.print " x0: " {hex = false} %a : tensor<8xf32>
  hfusion.barrier
  %sd = hfusion.symbolic_dim @S0 : index
  %v:2 = hfusion.reduce_with_index {tie_break_left = true, unsigned_src = false} <max> ins(%a, %a : tensor<8xf32>, tensor<8xf32>) outs(%z, %z : tensor<f32>, tensor<f32>) dimensions = [0] -> tensor<f32>, tensor<f32>
  %r = hfusion.arange offset[%c1] strides[%c1] outs(%a : tensor<8xf32>) -> tensor<8xf32>
  %fl = hfusion.flip %a : tensor<8xf32> flip_axis = 1 -> tensor<8xf32>
  %hh = hfusion.histogram %w, 4, %mask : tensor<8xi32>, tensor<8xi1> -> tensor<4xi32>
  %in = hfusion.isnan %a : tensor<8xf32> -> tensor<8xi1>
  %i = hfusion.interleave %a, %a : tensor<8xf32>, tensor<8xf32> -> tensor<16xf32>
  return %0 : tensor<8xf32>
}
