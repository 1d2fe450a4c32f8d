// RUN: tilelang-npu opt %s -p 'plan-memory{reserve=true synchronise=false}' --verify-diagnostics | filecheck %s
// The planner of the ascendc branch reserves the last 256 bytes of UB.
// CHECK:      error[T104]: the tile does not fit: UB needs 196 608 bytes, 196 352 are available (256 too many)
func.func @k() {
  %all = memref.alloc() : memref<49152xf32, #hivm.address_space<ub>>
  hivm.hir.vexp ins(%all : memref<49152xf32, #hivm.address_space<ub>>) outs(%all : memref<49152xf32, #hivm.address_space<ub>>)
  return
}
