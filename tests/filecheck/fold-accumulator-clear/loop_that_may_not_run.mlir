// RUN: tilelang-npu opt %s -p fold-accumulator-clear --verify-diagnostics | filecheck %s
// Without an iteration nothing would clear the accumulator: refused, never wrong.
// CHECK: error[T211]: c is cleared before a loop that may not run
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
