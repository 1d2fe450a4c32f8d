// RUN: tilelang-npu opt %s -p plan-memory{synchronise=false} --verify-diagnostics | filecheck %s
// CHECK:      error[T104]: the tile does not fit: UB needs 200 000 bytes, 196 608 are available (3 392 too many)
// CHECK:      these buffers are live at the peak:
// CHECK-NEXT: big 120 000 bytes
// CHECK-NEXT: small 80 000 bytes
func.func @k() {
  %small = memref.alloc() : memref<20000xf32, #hivm.address_space<ub>>
  %big = memref.alloc() : memref<30000xf32, #hivm.address_space<ub>>
  hivm.hir.vexp ins(%small : memref<20000xf32, #hivm.address_space<ub>>) outs(%small : memref<20000xf32, #hivm.address_space<ub>>)
  hivm.hir.vexp ins(%big : memref<30000xf32, #hivm.address_space<ub>>) outs(%big : memref<30000xf32, #hivm.address_space<ub>>)
  hivm.hir.vexp ins(%small : memref<20000xf32, #hivm.address_space<ub>>) outs(%small : memref<20000xf32, #hivm.address_space<ub>>)
  return
}
