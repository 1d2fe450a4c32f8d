// RUN: tilelang-npu opt %s -p convert-named-ops | filecheck %s
// The offset of an arange is optional, and is not counted among its strides.
// CHECK-LABEL: func.func @k
// CHECK:      hivm.hir.varange offset[%a] strides[%b, %c] outs(%y : memref<4x8xi32>)
// CHECK-NEXT: hivm.hir.varange strides[%b, %c] outs(%y : memref<4x8xi32>)
func.func @k(%y: memref<4x8xi32>, %a: index, %b: index, %c: index)
    attributes {hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>} {
  hfusion.arange offset[%a] strides[%b, %c] outs(%y : memref<4x8xi32>)
  hfusion.arange strides[%b, %c] outs(%y : memref<4x8xi32>)
  return
}
