// RUN: tilelang-npu opt %s -p infer-scopes --verify-diagnostics | filecheck %s
// A buffer that the user placed in UB cannot be an operand of a gemm.
// CHECK: error[T201]: a [32, 16] float16 is in UB, but this use needs it in L1 (it is the left operand of a gemm)
func.func @k(%init: i1) {
  %a = tile.alloc "a" : memref<32x16xf16, #hivm.address_space<ub>>
  %b = tile.alloc "b" : memref<16x32xf16, #tile.scope<shared>>
  %c = tile.alloc "c" : memref<32x32xf32, #tile.scope<fragment>>
  tile.gemm %a, %b into %c init %init : memref<32x16xf16, #hivm.address_space<ub>>, memref<16x32xf16, #tile.scope<shared>> into memref<32x32xf32, #tile.scope<fragment>>
  return
}
