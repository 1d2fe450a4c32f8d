// RUN: tilelang-npu opt %s -p convert-named-ops | filecheck %s
// Elementwise ops, fills and conversions become one HIVM op each; a reduction is combined with the previous contents of its
// destination.
// CHECK-LABEL: func.func @k
// CHECK:      hivm.hir.vln ins(%x : memref<4x8xf32>) outs(%y : memref<4x8xf32>)
// CHECK-NEXT: hivm.hir.vmin ins(%x, %y : memref<4x8xf32>, memref<4x8xf32>) outs(%y : memref<4x8xf32>)
// CHECK-NEXT: hivm.hir.vcast ins(%x : memref<4x8xf32>) outs(%h : memref<4x8xf16>) round_mode = <floor>
// CHECK-NEXT: hivm.hir.vcmp ins(%x, %y : memref<4x8xf32>, memref<4x8xf32>) outs(%m : memref<4x8xi1>) compare_mode = <ge>
// CHECK-NEXT: hivm.hir.vbrc ins(%n : f32) outs(%y : memref<4x8xf32>)
// CHECK-NEXT: %[[MINUS:.*]] = arith.constant -1.000000e+00 : f32
// CHECK-NEXT: hivm.hir.vmul ins(%x, %[[MINUS]] : memref<4x8xf32>, f32) outs(%y : memref<4x8xf32>)
// CHECK-NEXT: %[[ROOM:.*]] = memref.alloc() : memref<4x1xf32>
// CHECK-NEXT: hivm.hir.vreduce <max> ins(%x : memref<4x8xf32>) outs(%[[ROOM]] : memref<4x1xf32>) reduce_dims = [1]
// CHECK-NEXT: %[[ROW:.*]] = memref.collapse_shape %[[ROOM]] {{\[\[}}0, 1]]
// CHECK-NEXT: hivm.hir.vmax ins(%[[ROW]], %r : memref<4xf32>, memref<4xf32>) outs(%r : memref<4xf32>)
func.func @k(%x: memref<4x8xf32>, %y: memref<4x8xf32>, %h: memref<4x8xf16>, %m: memref<4x8xi1>, %r: memref<4xf32>, %n: f32)
    attributes {hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>} {
  linalg.elemwise_unary {fun = #linalg.unary_fn<log>} ins(%x : memref<4x8xf32>) outs(%y : memref<4x8xf32>)
  hfusion.elemwise_binary {fun = #hfusion.binary_fn<minf>} ins(%x, %y : memref<4x8xf32>, memref<4x8xf32>) outs(%y : memref<4x8xf32>)
  hfusion.cast {round_mode = #hfusion.round_mode<floor>} ins(%x : memref<4x8xf32>) outs(%h : memref<4x8xf16>)
  hfusion.compare {compare_fn = #hfusion.compare_fn<vge>} ins(%x, %y : memref<4x8xf32>, memref<4x8xf32>) outs(%m : memref<4x8xi1>)
  linalg.fill ins(%n : f32) outs(%y : memref<4x8xf32>)
  linalg.elemwise_unary {fun = #linalg.unary_fn<negf>} ins(%x : memref<4x8xf32>) outs(%y : memref<4x8xf32>)
  linalg.reduce { arith.maximumf } ins(%x : memref<4x8xf32>) outs(%r : memref<4xf32>) dimensions = [1]
  return
}
