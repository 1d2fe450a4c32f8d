// RUN: tilelang-npu opt %s -p legalise-types --verify-diagnostics | filecheck %s
// No buffer bounds the operand's size, so the size of the temporary is unknown.
// CHECK: error[T251]: this operation needs a temporary buffer, and its size has no constant bound
// CHECK: help: work on a buffer of constant size, or on a slice of one
func.func @k(%x: memref<?xbf16, #hivm.address_space<ub>>) {
  tile.elementwise "exp" ins(%x : memref<?xbf16, #hivm.address_space<ub>>) outs(%x : memref<?xbf16, #hivm.address_space<ub>>)
  return
}
