// RUN: tilelang-npu opt %s -p plan-memory{synchronise=false} | filecheck %s
// Both sources of the sum have 1024 bytes: at adjacent addresses they would start in the same banks. The second one starts
// half a bank cycle later.
// CHECK: hivm.hir.pointer_cast(%c0_i64) : memref<256xf32
// CHECK: hivm.hir.pointer_cast(%c1280_i64) : memref<256xf32
// CHECK: hivm.hir.pointer_cast(%c2304_i64) : memref<256xf32
func.func @k() {
  %a = memref.alloc() : memref<256xf32, #hivm.address_space<ub>>
  %b = memref.alloc() : memref<256xf32, #hivm.address_space<ub>>
  %c = memref.alloc() : memref<256xf32, #hivm.address_space<ub>>
  hivm.hir.vadd ins(%a, %b : memref<256xf32, #hivm.address_space<ub>>, memref<256xf32, #hivm.address_space<ub>>) outs(%c : memref<256xf32, #hivm.address_space<ub>>)
  return
}
