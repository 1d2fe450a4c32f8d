// RUN: tilelang-npu opt %s -p bufferise | filecheck %s
// A destination without other readers is written in place; one that is read later is copied first. A loop carries one buffer
// for each value.
// CHECK-LABEL: func.func @k
// CHECK:      %[[A:.*]] = memref.alloc() : memref<16xf32>
// CHECK-NEXT: hivm.hir.vabs ins(%x : memref<16xf32>) outs(%[[A]] : memref<16xf32>)
// CHECK-NEXT: hivm.hir.vrelu ins(%[[A]] : memref<16xf32>) outs(%[[A]] : memref<16xf32>)
// CHECK-NEXT: %[[U:.*]] = memref.alloc() : memref<16xf32>
// CHECK-NEXT: memref.copy %[[A]], %[[U]]
// CHECK-NEXT: scf.for
// CHECK-NEXT:   %[[B:.*]] = memref.alloc() : memref<16xf32>
// CHECK-NEXT:   hivm.hir.vadd ins(%[[U]], %x : memref<16xf32>, memref<16xf32>) outs(%[[B]] : memref<16xf32>)
// CHECK-NEXT:   memref.copy %[[B]], %[[U]]
// CHECK-NEXT: }
// CHECK-NEXT: memref.copy %[[U]], %y
// CHECK-NOT: tensor
func.func @k(%x: memref<16xf32>, %y: memref<16xf32>, %n: index) attributes {hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %t = bufferization.to_tensor %x restrict writable : memref<16xf32>
  %e = tensor.empty() : tensor<16xf32>
  %a = hivm.hir.vabs ins(%t : tensor<16xf32>) outs(%e : tensor<16xf32>) -> tensor<16xf32>
  %b = hivm.hir.vrelu ins(%a : tensor<16xf32>) outs(%a : tensor<16xf32>) -> tensor<16xf32>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%u = %b) -> (tensor<16xf32>) {
    %s = hivm.hir.vadd ins(%u, %t : tensor<16xf32>, tensor<16xf32>) outs(%e : tensor<16xf32>) -> tensor<16xf32>
    scf.yield %s : tensor<16xf32>
  }
  bufferization.materialize_in_destination %r in writable %y : (tensor<16xf32>, memref<16xf32>) -> ()
  return
}
