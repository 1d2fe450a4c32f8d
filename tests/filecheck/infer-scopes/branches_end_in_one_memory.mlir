// RUN: tilelang-npu opt %s -p infer-scopes | filecheck %s
// A branch changes a product in place, so it is in UB after the branch; the product is therefore copied to UB before the
// branch.
// CHECK-LABEL: func.func @changed
// CHECK:      tile.gemm {{.*}} into %[[L0C:.*]] init
// CHECK-NEXT: tile.copy %[[L0C]] to %[[GM:[a-z0-9_]+]]
// CHECK-NEXT: tile.copy %[[GM]] to %[[UB:[a-z0-9_]+]]
// CHECK-NEXT: scf.if
// CHECK-NEXT:   tile.elementwise "exp" ins(%[[UB]]
// CHECK-NEXT: }
// CHECK-NEXT: tile.copy %[[UB]] to %C
func.func @changed(%init: i1, %other: i1, %C: memref<32x32xf32, #hivm.address_space<gm>>) {
  %a = tile.alloc "a" : memref<32x16xf16, #tile.scope<shared>>
  %b = tile.alloc "b" : memref<16x32xf16, #tile.scope<shared>>
  %c = tile.alloc "c" : memref<32x32xf32, #tile.scope<fragment>>
  tile.gemm %a, %b into %c init %init : memref<32x16xf16, #tile.scope<shared>>, memref<16x32xf16, #tile.scope<shared>> into memref<32x32xf32, #tile.scope<fragment>>
  scf.if %other {
    tile.elementwise "exp" ins(%c : memref<32x32xf32, #tile.scope<fragment>>) outs(%c : memref<32x32xf32, #tile.scope<fragment>>)
  }
  tile.copy %c to %C : memref<32x32xf32, #tile.scope<fragment>> to memref<32x32xf32, #hivm.address_space<gm>>
  return
}

// One branch multiplies, the other one fills: the product is copied at the end of its branch to the memory of the fill.
// CHECK-LABEL: func.func @made
// CHECK:      scf.if
// CHECK-NEXT:   tile.gemm {{.*}} into %[[L0C:.*]] init
// CHECK-NEXT:   tile.copy %[[L0C]] to %[[GM:[a-z0-9_]+]]
// CHECK-NEXT:   tile.copy %[[GM]] to %[[UB:[a-z0-9_]+]]
// CHECK-NEXT: } else {
// CHECK-NEXT:   tile.elementwise "exp" ins(%d{{.*}}) outs(%[[UB]]
// CHECK-NEXT: }
// CHECK-NEXT: tile.copy %[[UB]] to %C
func.func @made(%init: i1, %other: i1, %C: memref<32x32xf32, #hivm.address_space<gm>>) {
  %a = tile.alloc "a" : memref<32x16xf16, #tile.scope<shared>>
  %b = tile.alloc "b" : memref<16x32xf16, #tile.scope<shared>>
  %c = tile.alloc "c" : memref<32x32xf32, #tile.scope<fragment>>
  %d = tile.alloc "d" : memref<32x32xf32, #tile.scope<shared>>
  scf.if %other {
    tile.gemm %a, %b into %c init %init : memref<32x16xf16, #tile.scope<shared>>, memref<16x32xf16, #tile.scope<shared>> into memref<32x32xf32, #tile.scope<fragment>>
  } else {
    tile.elementwise "exp" ins(%d : memref<32x32xf32, #tile.scope<shared>>) outs(%c : memref<32x32xf32, #tile.scope<fragment>>)
  }
  tile.copy %c to %C : memref<32x32xf32, #tile.scope<fragment>> to memref<32x32xf32, #hivm.address_space<gm>>
  return
}
