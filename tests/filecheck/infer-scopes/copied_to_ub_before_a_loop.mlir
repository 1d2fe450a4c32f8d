// RUN: tilelang-npu opt %s -p infer-scopes | filecheck %s
// A product is in L0C, and a loop changes some of its elements in UB; the other elements stay, so it is copied to UB once,
// before the loop.
// CHECK: tile.gemm {{.*}} into %c_l0c init
// CHECK-NEXT: tile.copy %c_l0c to %c_workspace
// CHECK-NEXT: tile.copy %c_workspace to %c_ub
// CHECK-NEXT: scf.for
// CHECK-NEXT: memref.load %c_ub
// CHECK: memref.store {{.*}}, %c_ub
// CHECK: tile.copy %c_ub to %C
func.func @k(%X: memref<16x16xf16, #hivm.address_space<gm>>, %C: memref<16x16xf32, #hivm.address_space<gm>>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %true = arith.constant true
  %x = tile.alloc "x" : memref<16x16xf16, #tile.scope<shared>>
  %c = tile.alloc "c" : memref<16x16xf32, #tile.scope<fragment>>
  tile.copy %X to %x : memref<16x16xf16, #hivm.address_space<gm>> to memref<16x16xf16, #tile.scope<shared>>
  tile.gemm %x, %x into %c init %true : memref<16x16xf16, #tile.scope<shared>>, memref<16x16xf16, #tile.scope<shared>> into memref<16x16xf32, #tile.scope<fragment>>
  scf.for %i = %c0 to %c4 step %c1 {
    %e = memref.load %c[%i, %i] : memref<16x16xf32, #tile.scope<fragment>>
    %s = arith.addf %e, %e : f32
    memref.store %s, %c[%i, %i] : memref<16x16xf32, #tile.scope<fragment>>
  }
  tile.copy %c to %C : memref<16x16xf32, #tile.scope<fragment>> to memref<16x16xf32, #hivm.address_space<gm>>
  return
}
