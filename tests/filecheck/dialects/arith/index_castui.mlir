// RUN: tilelang-npu opt %s | filecheck %s
// RUN: tilelang-npu opt %s --print-op-generic | tilelang-npu opt - | filecheck %s
// An op of arith that xDSL does not have.
// CHECK: %i = arith.index_castui %p : i1 to index
func.func @f(%p: i1) -> index {
  %i = arith.index_castui %p : i1 to index
  return %i : index
}
