// RUN: tilelang-npu opt %s -p infer-scopes | filecheck %s
// The operands of a gemm are in L1, and its accumulator is in L0C.
// CHECK-DAG: tile.alloc "a" : memref<32x16xf16, #hivm.address_space<cbuf>>
// CHECK-DAG: tile.alloc "b" : memref<16x32xf16, #hivm.address_space<cbuf>>
// CHECK-DAG: tile.alloc "c" : memref<32x32xf32, #hivm.address_space<cc>>
func.func @k(%init: i1) {
  %a = tile.alloc "a" : memref<32x16xf16, #tile.scope<shared>>
  %b = tile.alloc "b" : memref<16x32xf16, #tile.scope<shared>>
  %c = tile.alloc "c" : memref<32x32xf32, #tile.scope<fragment>>
  tile.gemm %a, %b into %c init %init : memref<32x16xf16, #tile.scope<shared>>, memref<16x32xf16, #tile.scope<shared>> into memref<32x32xf32, #tile.scope<fragment>>
  return
}
