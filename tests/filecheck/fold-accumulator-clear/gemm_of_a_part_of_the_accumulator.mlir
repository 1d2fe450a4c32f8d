// RUN: tilelang-npu opt %s -p fold-accumulator-clear | filecheck %s
// The gemm writes half of the cleared accumulator and cannot initialise the other half, so the clear becomes a product of
// zeros. A gemm of the same half initialises it.
// CHECK:      tile.gemm %zeros_left, %zeros_right into %c
// CHECK:      tile.gemm %a, %b into %{{.*}} init %no
// CHECK-NOT:  zeros
// CHECK:      tile.gemm %a, %b into %{{.*}} init %{{[0-9]+}}
func.func @k() {
  %zero = arith.constant 0.0 : f32
  %no = arith.constant false
  %a = tile.alloc "a" : memref<16x16xf16, #hivm.address_space<cbuf>>
  %b = tile.alloc "b" : memref<16x32xf16, #hivm.address_space<cbuf>>
  %c = tile.alloc "c" : memref<32x32xf32, #hivm.address_space<cc>>
  tile.fill %zero into %c : f32 into memref<32x32xf32, #hivm.address_space<cc>>
  %half = tile.region %c[0, 0] [16, 32] keep [0, 1] : memref<32x32xf32, #hivm.address_space<cc>> to memref<16x32xf32, strided<[32, 1]>, #hivm.address_space<cc>>
  tile.gemm %a, %b into %half init %no : memref<16x16xf16, #hivm.address_space<cbuf>>, memref<16x32xf16, #hivm.address_space<cbuf>> into memref<16x32xf32, strided<[32, 1]>, #hivm.address_space<cc>>
  %cleared = tile.region %c[0, 0] [16, 32] keep [0, 1] : memref<32x32xf32, #hivm.address_space<cc>> to memref<16x32xf32, strided<[32, 1]>, #hivm.address_space<cc>>
  tile.fill %zero into %cleared : f32 into memref<16x32xf32, strided<[32, 1]>, #hivm.address_space<cc>>
  tile.gemm %a, %b into %half init %no : memref<16x16xf16, #hivm.address_space<cbuf>>, memref<16x32xf16, #hivm.address_space<cbuf>> into memref<16x32xf32, strided<[32, 1]>, #hivm.address_space<cc>>
  return
}
