// RUN: tilelang-npu opt %s -p legalise-types --verify-diagnostics | filecheck %s
// A view has the size of its source, which is unbounded here.
// CHECK: error[T251]: this operation needs a temporary buffer, and its size has no constant bound
func.func @k(%x: memref<?xbf16, #hivm.address_space<ub>>) {
  %v = tile.view %x : memref<?xbf16, #hivm.address_space<ub>> to memref<1x?xbf16, #hivm.address_space<ub>>
  tile.elementwise "exp" ins(%v : memref<1x?xbf16, #hivm.address_space<ub>>) outs(%v : memref<1x?xbf16, #hivm.address_space<ub>>)
  return
}
