// RUN: tilelang-npu opt %s -p infer-scopes | filecheck %s
// fixpipe converts float32 to float16 when it stores to GM, but not to int32: this product goes to UB through a workspace.
// CHECK:      tile.gemm {{.*}} into %[[C:.*]] init
// CHECK-NEXT: tile.copy %[[C]] to %H
// CHECK-NEXT: tile.gemm {{.*}} into %[[L0C:.*]] init
// CHECK-NEXT: tile.copy %[[L0C]] to %[[GM:.*]] :
// CHECK-NEXT: tile.copy %[[GM]] to %[[UB:.*]] :
// CHECK-NEXT: tile.copy %[[UB]] to %I
func.func @k(%init: i1, %H: memref<32x32xf16, #hivm.address_space<gm>>, %I: memref<32x32xi32, #hivm.address_space<gm>>) {
  %a = tile.alloc "a" : memref<32x16xf16, #tile.scope<shared>>
  %b = tile.alloc "b" : memref<16x32xf16, #tile.scope<shared>>
  %c = tile.alloc "c" : memref<32x32xf32, #tile.scope<fragment>>
  %d = tile.alloc "d" : memref<32x32xf32, #tile.scope<fragment>>
  tile.gemm %a, %b into %c init %init : memref<32x16xf16, #tile.scope<shared>>, memref<16x32xf16, #tile.scope<shared>> into memref<32x32xf32, #tile.scope<fragment>>
  tile.copy %c to %H : memref<32x32xf32, #tile.scope<fragment>> to memref<32x32xf16, #hivm.address_space<gm>>
  tile.gemm %a, %b into %d init %init : memref<32x16xf16, #tile.scope<shared>>, memref<16x32xf16, #tile.scope<shared>> into memref<32x32xf32, #tile.scope<fragment>>
  tile.copy %d to %I : memref<32x32xf32, #tile.scope<fragment>> to memref<32x32xi32, #hivm.address_space<gm>>
  return
}
