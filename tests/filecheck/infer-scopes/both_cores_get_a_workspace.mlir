// RUN: tilelang-npu opt %s -p infer-scopes | filecheck %s
// Vector work reads the gemm's result: one allocation in each memory and a workspace between them; both copies precede the
// reader directly. The store to GM reads the new value in UB.
// CHECK:      %[[L0C:.*]] = tile.alloc "c_l0c" : memref<32x32xf32, #hivm.address_space<cc>>
// CHECK:      %[[UB:.*]] = tile.alloc "c_ub" : memref<32x32xf32, #hivm.address_space<ub>>
// CHECK:      %[[GM:.*]] = tile.alloc "c_workspace" : memref<32x32xf32, #hivm.address_space<gm>>
// CHECK:      tile.gemm {{.*}} into %[[L0C]]
// CHECK-NEXT: tile.copy %[[L0C]] to %[[GM]]
// CHECK-NEXT: tile.copy %[[GM]] to %[[UB]]
// CHECK-NEXT: tile.elementwise "exp" ins(%[[UB]]
// CHECK-NEXT: tile.copy %[[UB]] to %C
func.func @k(%init: i1, %C: memref<32x32xf32, #hivm.address_space<gm>>) {
  %a = tile.alloc "a" : memref<32x16xf16, #tile.scope<shared>>
  %b = tile.alloc "b" : memref<16x32xf16, #tile.scope<shared>>
  %c = tile.alloc "c" : memref<32x32xf32, #tile.scope<fragment>>
  tile.gemm %a, %b into %c init %init : memref<32x16xf16, #tile.scope<shared>>, memref<16x32xf16, #tile.scope<shared>> into memref<32x32xf32, #tile.scope<fragment>>
  tile.elementwise "exp" ins(%c : memref<32x32xf32, #tile.scope<fragment>>) outs(%c : memref<32x32xf32, #tile.scope<fragment>>)
  tile.copy %c to %C : memref<32x32xf32, #tile.scope<fragment>> to memref<32x32xf32, #hivm.address_space<gm>>
  return
}
