// RUN: tilelang-npu opt %s -p fold-accumulator-clear | filecheck %s
// If the loop has no iteration, none of its gemms initialises the accumulator, so the clear becomes a product of zeros.
// CHECK-NOT:  tile.fill %zero into %c
// CHECK:      %zeros_left = tile.alloc "zeros_left" : memref<32x16xf16
// CHECK-NEXT: %zeros_right = tile.alloc "zeros_right" : memref<16x32xf16
// CHECK-NEXT: tile.fill {{.*}} into %zeros_left
// CHECK-NEXT: tile.fill {{.*}} into %zeros_right
// CHECK-NEXT: hivm.hir.pipe_barrier[<PIPE_ALL>]
// CHECK-NEXT: tile.gemm %zeros_left, %zeros_right into %c
// CHECK-NEXT: hivm.hir.pipe_barrier[<PIPE_ALL>]
// CHECK:      scf.for
func.func @k(%n: i32) {
  %zero = arith.constant 0.0 : f32
  %no = arith.constant false
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %trips = arith.index_cast %n : i32 to index
  %a = tile.alloc "a" : memref<32x16xf16, #hivm.address_space<cbuf>>
  %b = tile.alloc "b" : memref<16x32xf16, #hivm.address_space<cbuf>>
  %c = tile.alloc "c" : memref<32x32xf32, #hivm.address_space<cc>>
  tile.fill %zero into %c : f32 into memref<32x32xf32, #hivm.address_space<cc>>
  scf.for %k = %c0 to %trips step %c1 {
    tile.gemm %a, %b into %c init %no : memref<32x16xf16, #hivm.address_space<cbuf>>, memref<16x32xf16, #hivm.address_space<cbuf>> into memref<32x32xf32, #hivm.address_space<cc>>
  }
  return
}
