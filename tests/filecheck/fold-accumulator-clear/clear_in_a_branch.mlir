// RUN: tilelang-npu opt %s -p fold-accumulator-clear | filecheck %s
// The cleared accumulator is read after the branch: the clear becomes a product of zeros. A clear that a gemm overwrites is
// dropped.
// CHECK: func.func @read
// CHECK: scf.if
// CHECK: tile.gemm %zeros_left, %zeros_right into %c
// CHECK: tile.copy %c to %d
// CHECK: func.func @overwritten
// CHECK-NOT: tile.fill
// CHECK-NOT: zeros_left
// CHECK: return
func.func @read(%n : i1) {
  %zero = arith.constant 0.0 : f32
  %yes = arith.constant true
  %a = tile.alloc "a" : memref<32x16xf16, #hivm.address_space<cbuf>>
  %b = tile.alloc "b" : memref<16x32xf16, #hivm.address_space<cbuf>>
  %c = tile.alloc "c" : memref<32x32xf32, #hivm.address_space<cc>>
  %d = tile.alloc "d" : memref<32x32xf32, #hivm.address_space<gm>>
  tile.gemm %a, %b into %c init %yes : memref<32x16xf16, #hivm.address_space<cbuf>>, memref<16x32xf16, #hivm.address_space<cbuf>> into memref<32x32xf32, #hivm.address_space<cc>>
  scf.if %n {
    tile.fill %zero into %c : f32 into memref<32x32xf32, #hivm.address_space<cc>>
  }
  tile.copy %c to %d : memref<32x32xf32, #hivm.address_space<cc>> to memref<32x32xf32, #hivm.address_space<gm>>
  return
}
func.func @overwritten(%n : i1) {
  %zero = arith.constant 0.0 : f32
  %yes = arith.constant true
  %a = tile.alloc "a" : memref<32x16xf16, #hivm.address_space<cbuf>>
  %b = tile.alloc "b" : memref<16x32xf16, #hivm.address_space<cbuf>>
  %c = tile.alloc "c" : memref<32x32xf32, #hivm.address_space<cc>>
  scf.if %n {
    tile.fill %zero into %c : f32 into memref<32x32xf32, #hivm.address_space<cc>>
  }
  tile.gemm %a, %b into %c init %yes : memref<32x16xf16, #hivm.address_space<cbuf>>, memref<16x32xf16, #hivm.address_space<cbuf>> into memref<32x32xf32, #hivm.address_space<cc>>
  return
}
