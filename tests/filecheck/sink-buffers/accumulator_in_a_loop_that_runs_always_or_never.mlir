// RUN: tilelang-npu opt %s -p sink-buffers | filecheck %s
// A product over a run-time length is initialised in each iteration, or is computed in none. If another operation writes the
// accumulator, too, an iteration may read that value.
// CHECK:      tile.alloc "cleared"
// CHECK-NEXT: scf.for
// CHECK-NEXT: tile.alloc "product"
func.func @k(%A: memref<16x16xf16, #hivm.address_space<cbuf>>, %B: memref<16x16xf16, #hivm.address_space<cbuf>>, %Y: memref<16x16xf32, #hivm.address_space<gm>>, %N: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %zero = arith.constant 0.0 : f32
  %product = tile.alloc "product" : memref<16x16xf32, #hivm.address_space<cc>>
  %cleared = tile.alloc "cleared" : memref<16x16xf32, #hivm.address_space<cc>>
  scf.for %i = %c0 to %c4 step %c1 {
    %less = arith.subi %N, %c1 : index
    scf.for %k = %c0 to %less step %c1 {
      %start = arith.cmpi eq, %k, %c0 : index
      tile.gemm %A, %B into %product init %start : memref<16x16xf16, #hivm.address_space<cbuf>>, memref<16x16xf16, #hivm.address_space<cbuf>> into memref<16x16xf32, #hivm.address_space<cc>>
      tile.gemm %A, %B into %cleared init %start : memref<16x16xf16, #hivm.address_space<cbuf>>, memref<16x16xf16, #hivm.address_space<cbuf>> into memref<16x16xf32, #hivm.address_space<cc>>
    }
    tile.copy %product to %Y : memref<16x16xf32, #hivm.address_space<cc>> to memref<16x16xf32, #hivm.address_space<gm>>
    tile.copy %cleared to %Y : memref<16x16xf32, #hivm.address_space<cc>> to memref<16x16xf32, #hivm.address_space<gm>>
    tile.fill %zero into %cleared : f32 into memref<16x16xf32, #hivm.address_space<cc>>
  }
  return
}
