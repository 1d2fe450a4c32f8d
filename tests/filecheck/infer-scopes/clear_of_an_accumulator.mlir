// RUN: tilelang-npu opt %s -p infer-scopes | filecheck %s
// Vector work reads the cleared accumulator first. If products are added to it on only some paths, it has to be in L0C
// there, to which no path leads from UB, so it is cleared in L0C. If a gemm initialises it, it is cleared in UB, which saves
// a product of zeros.
// CHECK-LABEL: func.func @added_to
// CHECK:         tile.fill %zero into %c_l0c
// CHECK:         tile.copy %c_l0c to %c_workspace
// CHECK-LABEL: func.func @started_over
// CHECK:         tile.fill %zero into %c_ub
func.func @added_to(%number: i32, %p: i1, %C: memref<32x32xf32, #hivm.address_space<gm>>) {
  %zero = arith.constant 0.0 : f32
  %true = arith.constant true
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.index_cast %number : i32 to index
  %a = tile.alloc "a" : memref<32x16xf16, #tile.scope<shared>>
  %b = tile.alloc "b" : memref<16x32xf16, #tile.scope<shared>>
  %c = tile.alloc "c" : memref<32x32xf32, #tile.scope<fragment>>
  %d = tile.alloc "d" : memref<32x32xf32, #tile.scope<shared>>
  tile.fill %zero into %c : f32 into memref<32x32xf32, #tile.scope<fragment>>
  tile.elementwise "exp" ins(%c : memref<32x32xf32, #tile.scope<fragment>>) outs(%d : memref<32x32xf32, #tile.scope<shared>>)
  scf.for %i = %c0 to %n step %c1 {
    tile.gemm %a, %b into %c init %true : memref<32x16xf16, #tile.scope<shared>>, memref<16x32xf16, #tile.scope<shared>> into memref<32x32xf32, #tile.scope<fragment>>
  }
  scf.for %i = %c0 to %n step %c1 {
    scf.if %p {
      %first = arith.cmpi eq, %i, %c0 : index
      tile.gemm %a, %b into %c init %first : memref<32x16xf16, #tile.scope<shared>>, memref<16x32xf16, #tile.scope<shared>> into memref<32x32xf32, #tile.scope<fragment>>
    }
  }
  tile.copy %c to %C : memref<32x32xf32, #tile.scope<fragment>> to memref<32x32xf32, #hivm.address_space<gm>>
  tile.copy %d to %C : memref<32x32xf32, #tile.scope<shared>> to memref<32x32xf32, #hivm.address_space<gm>>
  return
}
func.func @started_over(%C: memref<32x32xf32, #hivm.address_space<gm>>) {
  %zero = arith.constant 0.0 : f32
  %true = arith.constant true
  %a = tile.alloc "a" : memref<32x16xf16, #tile.scope<shared>>
  %b = tile.alloc "b" : memref<16x32xf16, #tile.scope<shared>>
  %c = tile.alloc "c" : memref<32x32xf32, #tile.scope<fragment>>
  %d = tile.alloc "d" : memref<32x32xf32, #tile.scope<shared>>
  tile.fill %zero into %c : f32 into memref<32x32xf32, #tile.scope<fragment>>
  tile.elementwise "exp" ins(%c : memref<32x32xf32, #tile.scope<fragment>>) outs(%d : memref<32x32xf32, #tile.scope<shared>>)
  tile.gemm %a, %b into %c init %true : memref<32x16xf16, #tile.scope<shared>>, memref<16x32xf16, #tile.scope<shared>> into memref<32x32xf32, #tile.scope<fragment>>
  tile.copy %c to %C : memref<32x32xf32, #tile.scope<fragment>> to memref<32x32xf32, #hivm.address_space<gm>>
  tile.copy %d to %C : memref<32x32xf32, #tile.scope<shared>> to memref<32x32xf32, #hivm.address_space<gm>>
  return
}
