// RUN: tilelang-npu opt %s -p accumulate-in-ub | filecheck %s
// Vector work has written the accumulator: the gemm gets a separate buffer, and its product is added in UB.
// CHECK:      tile.elementwise "mul"
// CHECK-NEXT: %[[P:.*]] = tile.alloc "product" : memref<32x32xf32, #tile.scope<fragment>>
// CHECK-NEXT: %[[YES:.*]] = arith.constant true
// CHECK-NEXT: tile.gemm %a, %b into %[[P]] init %[[YES]]
// CHECK-NEXT: tile.elementwise "add" ins(%c, %[[P]]
// CHECK-NOT:  tile.gemm
func.func @k() {
  %half = arith.constant 0.5 : f32
  %no = arith.constant false
  %a = tile.alloc "a" : memref<32x16xf16, #tile.scope<shared>>
  %b = tile.alloc "b" : memref<16x32xf16, #tile.scope<shared>>
  %c = tile.alloc "c" : memref<32x32xf32, #tile.scope<fragment>>
  tile.elementwise "mul" ins(%c, %half : memref<32x32xf32, #tile.scope<fragment>>, f32) outs(%c : memref<32x32xf32, #tile.scope<fragment>>)
  tile.gemm %a, %b into %c init %no : memref<32x16xf16, #tile.scope<shared>>, memref<16x32xf16, #tile.scope<shared>> into memref<32x32xf32, #tile.scope<fragment>>
  return
}
