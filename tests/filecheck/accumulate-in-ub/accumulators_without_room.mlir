// RUN: tilelang-npu opt %s -p accumulate-in-ub | filecheck %s
// The next iteration adds to both accumulators, and L0C has no room for the two: their products are added in UB, in two
// parts that share a buffer.
// CHECK:      scf.for
// CHECK:      %[[P:[a-z0-9_]+]] = tile.alloc "product" : memref<128x192xf32, #tile.scope<fragment>>
// CHECK:      tile.gemm %a, %b into %[[P]] init
// CHECK:      %[[LEFT:[a-z0-9_]+]] = tile.region %[[P]][0, 0] [128, 96]
// CHECK:      %[[L:[a-z0-9_]+]] = tile.region %c[0, 0] [128, 96]
// CHECK:      %[[PART:[a-z0-9_]+]] = tile.alloc "part" {tile.scratch} : memref<128x96xf32, #hivm.address_space<ub>>
// CHECK-NEXT: tile.copy %[[LEFT]] to %[[PART]]
// CHECK-NEXT: tile.elementwise "add" ins(%[[L]], %[[PART]]
// CHECK:      %[[RIGHT:[a-z0-9_]+]] = tile.region %[[P]][0, 96] [128, 96]
// CHECK:      %[[R:[a-z0-9_]+]] = tile.region %c[0, 96] [128, 96]
// CHECK-NEXT: tile.copy %[[RIGHT]] to %[[PART]]
// CHECK-NEXT: tile.elementwise "add" ins(%[[R]], %[[PART]]
// CHECK:      tile.gemm %a, %e into %{{.*}} init
// CHECK-NOT:  tile.gemm
func.func @main(%A: memref<128x32xf16, #hivm.address_space<gm>>, %B: memref<32x192xf16, #hivm.address_space<gm>>, %E: memref<32x128xf16, #hivm.address_space<gm>>, %D: memref<128x128xf32, #hivm.address_space<gm>>, %C: memref<128x192xf32, #hivm.address_space<gm>>) attributes {tile.dialect = "npuir"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %zero = arith.constant 0.000000e+00 : f32
  %no = arith.constant false
  tile.launch(%c1) sub_blocks 1 : i64 {
  ^bb0(%0: index):
    %a = tile.alloc "a" : memref<128x32xf16, #tile.scope<shared>>
    %b = tile.alloc "b" : memref<32x192xf16, #tile.scope<shared>>
    %e = tile.alloc "e" : memref<32x128xf16, #tile.scope<shared>>
    %c = tile.alloc "c" : memref<128x192xf32, #tile.scope<fragment>>
    %d = tile.alloc "d" : memref<128x128xf32, #tile.scope<fragment>>
    tile.fill %zero into %c : f32 into memref<128x192xf32, #tile.scope<fragment>>
    tile.fill %zero into %d : f32 into memref<128x128xf32, #tile.scope<fragment>>
    scf.for %k = %c0 to %c3 step %c1 {
      tile.copy %A to %a : memref<128x32xf16, #hivm.address_space<gm>> to memref<128x32xf16, #tile.scope<shared>>
      tile.copy %B to %b : memref<32x192xf16, #hivm.address_space<gm>> to memref<32x192xf16, #tile.scope<shared>>
      tile.copy %E to %e : memref<32x128xf16, #hivm.address_space<gm>> to memref<32x128xf16, #tile.scope<shared>>
      tile.gemm %a, %b into %c init %no : memref<128x32xf16, #tile.scope<shared>>, memref<32x192xf16, #tile.scope<shared>> into memref<128x192xf32, #tile.scope<fragment>>
      tile.gemm %a, %e into %d init %no : memref<128x32xf16, #tile.scope<shared>>, memref<32x128xf16, #tile.scope<shared>> into memref<128x128xf32, #tile.scope<fragment>>
    }
    tile.copy %c to %C : memref<128x192xf32, #tile.scope<fragment>> to memref<128x192xf32, #hivm.address_space<gm>>
    tile.copy %d to %D : memref<128x128xf32, #tile.scope<fragment>> to memref<128x128xf32, #hivm.address_space<gm>>
  }
  return
}
