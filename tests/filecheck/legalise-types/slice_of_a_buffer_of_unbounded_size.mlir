// RUN: tilelang-npu opt %s -p legalise-types --verify-diagnostics | filecheck %s
// A slice of run-time size is at most as large as its buffer, whose size is unbounded here.
// CHECK: error[T251]: this operation needs a temporary buffer, and its size has no constant bound
func.func @k(%x: memref<?xbf16, #hivm.address_space<ub>>, %n: index) {
  %s = tile.region %x[0] [%n] keep [0] : memref<?xbf16, #hivm.address_space<ub>> to memref<?xbf16, strided<[1]>, #hivm.address_space<ub>>
  tile.elementwise "exp" ins(%s : memref<?xbf16, strided<[1]>, #hivm.address_space<ub>>) outs(%s : memref<?xbf16, strided<[1]>, #hivm.address_space<ub>>)
  return
}
