// RUN: tilelang-npu opt %s -p order-hand-overs | filecheck %s
// The gemm reads %b above the copies that fill it from vector work: these move before it, so that the k-th receive gets the
// k-th send. Independent operations stay in place.
// CHECK:      scf.for
// CHECK-NEXT:   tile.fill {{.*}} into %other
// CHECK-NEXT:   tile.copy %u to %b
// CHECK-NEXT:   tile.gemm %a, %b
func.func @k(%init: i1, %v: f32, %h: f16) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %a = tile.alloc "a" : memref<32x16xf16, #tile.scope<shared>>
  %b = tile.alloc "b" : memref<16x32xf16, #tile.scope<shared>>
  %c = tile.alloc "c" : memref<32x32xf32, #tile.scope<fragment>>
  %u = tile.alloc "u" : memref<16x32xf16, #tile.scope<shared>>
  %other = tile.alloc "other" : memref<8xf32, #tile.scope<shared>>
  tile.fill %h into %u : f16 into memref<16x32xf16, #tile.scope<shared>>
  scf.for %k = %c0 to %c4 step %c1 {
    tile.gemm %a, %b into %c init %init : memref<32x16xf16, #tile.scope<shared>>, memref<16x32xf16, #tile.scope<shared>> into memref<32x32xf32, #tile.scope<fragment>>
    tile.fill %v into %other : f32 into memref<8xf32, #tile.scope<shared>>
    tile.copy %u to %b : memref<16x32xf16, #tile.scope<shared>> to memref<16x32xf16, #tile.scope<shared>>
  }
  return
}
