// RUN: tilelang-npu opt %s -p 'fold-accumulator-clear{enabled=false}' | filecheck %s
// Switched off: a product of zeros before the loop, and the gemm in the loop unchanged.
// CHECK:      tile.gemm %zeros_left, %zeros_right into %c
// CHECK:      scf.for
// CHECK-NOT:  arith.cmpi
func.func @k() {
  %zero = arith.constant 0.0 : f32
  %no = arith.constant false
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %a = tile.alloc "a" : memref<32x16xf16, #hivm.address_space<cbuf>>
  %b = tile.alloc "b" : memref<16x32xf16, #hivm.address_space<cbuf>>
  %c = tile.alloc "c" : memref<32x32xf32, #hivm.address_space<cc>>
  tile.fill %zero into %c : f32 into memref<32x32xf32, #hivm.address_space<cc>>
  scf.for %k = %c0 to %c4 step %c1 {
    tile.gemm %a, %b into %c init %no : memref<32x16xf16, #hivm.address_space<cbuf>>, memref<16x32xf16, #hivm.address_space<cbuf>> into memref<32x32xf32, #hivm.address_space<cc>>
  }
  return
}
