// RUN: tilelang-npu opt %s -p infer-scopes | filecheck %s
// At the start of the loop the value is in L1, and at the end of an iteration in UB: it is copied to UB before the loop.
// CHECK: tile.copy %X to %x_l1
// CHECK: tile.copy %x_workspace to %x_ub
// CHECK-NEXT: scf.for
// CHECK: tile.gemm %x_l1, %x_l1
// CHECK-NEXT: tile.elementwise "exp" ins(%x_ub
func.func @k(%init: i1, %X: memref<16x16xf16, #hivm.address_space<gm>>, %C: memref<16x16xf32, #hivm.address_space<gm>>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %x = tile.alloc "x" : memref<16x16xf16, #tile.scope<shared>>
  %c = tile.alloc "c" : memref<16x16xf32, #tile.scope<fragment>>
  tile.copy %X to %x : memref<16x16xf16, #hivm.address_space<gm>> to memref<16x16xf16, #tile.scope<shared>>
  scf.for %i = %c0 to %c4 step %c1 {
    tile.gemm %x, %x into %c init %init : memref<16x16xf16, #tile.scope<shared>>, memref<16x16xf16, #tile.scope<shared>> into memref<16x16xf32, #tile.scope<fragment>>
    tile.elementwise "exp" ins(%x : memref<16x16xf16, #tile.scope<shared>>) outs(%x : memref<16x16xf16, #tile.scope<shared>>)
  }
  tile.copy %c to %C : memref<16x16xf32, #tile.scope<fragment>> to memref<16x16xf32, #hivm.address_space<gm>>
  return
}
