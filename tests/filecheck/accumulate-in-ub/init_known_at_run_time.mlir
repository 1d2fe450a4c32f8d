// RUN: tilelang-npu opt %s -p accumulate-in-ub | filecheck %s
// Whether the gemm initialises its accumulator is known only at run time: its product is then taken, or added.
// CHECK:      tile.gemm %a, %b into %[[P:.*]] init
// CHECK-NEXT: scf.if %fresh {
// CHECK-NEXT:   tile.copy %[[P]] to %c
// CHECK-NEXT: } else {
// CHECK-NEXT:   tile.elementwise "add" ins(%c, %[[P]]
func.func @k(%fresh: i1) {
  %one = arith.constant 1.0 : f32
  %a = tile.alloc "a" : memref<32x16xf16, #tile.scope<shared>>
  %b = tile.alloc "b" : memref<16x32xf16, #tile.scope<shared>>
  %c = tile.alloc "c" : memref<32x32xf32, #tile.scope<fragment>>
  tile.fill %one into %c : f32 into memref<32x32xf32, #tile.scope<fragment>>
  tile.gemm %a, %b into %c init %fresh : memref<32x16xf16, #tile.scope<shared>>, memref<16x32xf16, #tile.scope<shared>> into memref<32x32xf32, #tile.scope<fragment>>
  return
}
