// RUN: tilelang-npu opt %s -p insert-sync | filecheck %s
// Which of two buffers is filled is known only at run time: the second load may overwrite the data of the first one.
// CHECK:      hivm.hir.load
// CHECK-NEXT: hivm.hir.pipe_barrier[<PIPE_MTE2>]
// CHECK-NEXT: hivm.hir.load
func.func @k(%X: memref<64xf32, #hivm.address_space<gm>>, %first: i1) attributes {hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>, hivm.func_core_type = #hivm.func_core_type<AIV>} {
  %p0 = arith.constant 0 : i64
  %p1 = arith.constant 256 : i64
  %a = hivm.hir.pointer_cast(%p0) : memref<64xf32, #hivm.address_space<ub>>
  %b = hivm.hir.pointer_cast(%p1) : memref<64xf32, #hivm.address_space<ub>>
  %one = arith.select %first, %a, %b : memref<64xf32, #hivm.address_space<ub>>
  hivm.hir.load ins(%X : memref<64xf32, #hivm.address_space<gm>>) outs(%a : memref<64xf32, #hivm.address_space<ub>>)
  hivm.hir.load ins(%X : memref<64xf32, #hivm.address_space<gm>>) outs(%one : memref<64xf32, #hivm.address_space<ub>>)
  return
}
