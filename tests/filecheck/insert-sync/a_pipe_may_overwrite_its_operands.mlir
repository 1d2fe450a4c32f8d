// RUN: tilelang-npu opt %s -p insert-sync | filecheck %s
// A pipe executes its operations in order, so it may overwrite what it has read. It may read what it wrote only after a
// barrier.
// CHECK:      hivm.hir.vrelu ins(%a
// CHECK-NEXT: hivm.hir.vbrc
// CHECK-NEXT: hivm.hir.pipe_barrier[<PIPE_V>]
// CHECK-NEXT: hivm.hir.vrelu ins(%a
func.func @k() attributes {hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>, hivm.func_core_type = #hivm.func_core_type<AIV>} {
  %p0 = arith.constant 0 : i64
  %p1 = arith.constant 256 : i64
  %p2 = arith.constant 512 : i64
  %one = arith.constant 1.0 : f32
  %a = hivm.hir.pointer_cast(%p0) : memref<64xf32, #hivm.address_space<ub>>
  %b = hivm.hir.pointer_cast(%p1) : memref<64xf32, #hivm.address_space<ub>>
  %c = hivm.hir.pointer_cast(%p2) : memref<64xf32, #hivm.address_space<ub>>
  hivm.hir.vrelu ins(%a : memref<64xf32, #hivm.address_space<ub>>) outs(%b : memref<64xf32, #hivm.address_space<ub>>)
  hivm.hir.vbrc ins(%one : f32) outs(%a : memref<64xf32, #hivm.address_space<ub>>)
  hivm.hir.vrelu ins(%a : memref<64xf32, #hivm.address_space<ub>>) outs(%c : memref<64xf32, #hivm.address_space<ub>>)
  return
}
