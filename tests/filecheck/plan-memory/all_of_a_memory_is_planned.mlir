// RUN: tilelang-npu opt %s -p plan-memory{synchronise=false} | filecheck %s
// The planner of AscendNPU-IR uses all 196 608 bytes of UB.
// CHECK:      arith.constant 0 : i64
// CHECK:      hivm.hir.pointer_cast(%{{.*}}) : memref<49152xf32, #hivm.address_space<ub>>
func.func @k() {
  %all = memref.alloc() : memref<49152xf32, #hivm.address_space<ub>>
  hivm.hir.vexp ins(%all : memref<49152xf32, #hivm.address_space<ub>>) outs(%all : memref<49152xf32, #hivm.address_space<ub>>)
  return
}
