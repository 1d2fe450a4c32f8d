// RUN: tilelang-npu opt %s -p accumulate-in-ub | filecheck %s
// A clear, and gemms in a loop: no vector result is carried to a later iteration, so the pass changes nothing.
// CHECK-NOT: product
// CHECK:     tile.gemm %a, %b into %c init %no
func.func @k() {
  %zero = arith.constant 0.0 : f32
  %no = arith.constant false
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %a = tile.alloc "a" : memref<32x16xf16, #tile.scope<shared>>
  %b = tile.alloc "b" : memref<16x32xf16, #tile.scope<shared>>
  %c = tile.alloc "c" : memref<32x32xf32, #tile.scope<fragment>>
  tile.fill %zero into %c : f32 into memref<32x32xf32, #tile.scope<fragment>>
  scf.for %k = %c0 to %c4 step %c1 {
    tile.gemm %a, %b into %c init %no : memref<32x16xf16, #tile.scope<shared>>, memref<16x32xf16, #tile.scope<shared>> into memref<32x32xf32, #tile.scope<fragment>>
  }
  return
}
