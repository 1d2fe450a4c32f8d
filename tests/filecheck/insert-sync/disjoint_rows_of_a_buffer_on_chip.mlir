// RUN: tilelang-npu opt %s -p insert-sync | filecheck %s
// Each iteration accesses separate rows, on chip: its vadd waits for its vmul, and neither for the previous iteration. If
// rows overlap, they do.
// CHECK-LABEL: @apart
// CHECK:         scf.for
// CHECK-NOT:     pipe_barrier
// CHECK:         hivm.hir.vmul
// CHECK:         hivm.hir.pipe_barrier[<PIPE_V>]
// CHECK-NEXT:    hivm.hir.vadd
// CHECK-LABEL: @overlapping
// CHECK:         scf.for
// CHECK:         hivm.hir.pipe_barrier[<PIPE_V>]
// CHECK-NEXT:    hivm.hir.vmul
// CHECK:         hivm.hir.pipe_barrier[<PIPE_V>]
// CHECK-NEXT:    hivm.hir.vadd
func.func @apart(%n: index) attributes {hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>, hivm.func_core_type = #hivm.func_core_type<AIV>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %cst = arith.constant 2.0 : f32
  %p0 = arith.constant 0 : i64
  %x = hivm.hir.pointer_cast(%p0) : memref<64x64xf32, #hivm.address_space<ub>>
  scf.for %i = %c0 to %n step %c1 {
    %c = arith.constant 8 : index
    %row = arith.muli %i, %c : index
    %y = memref.subview %x[%row, 0] [8, 64] [1, 1] : memref<64x64xf32, #hivm.address_space<ub>> to memref<8x64xf32, strided<[64, 1], offset: ?>, #hivm.address_space<ub>>
    hivm.hir.vmul ins(%y, %cst : memref<8x64xf32, strided<[64, 1], offset: ?>, #hivm.address_space<ub>>, f32) outs(%y : memref<8x64xf32, strided<[64, 1], offset: ?>, #hivm.address_space<ub>>)
    hivm.hir.vadd ins(%y, %cst : memref<8x64xf32, strided<[64, 1], offset: ?>, #hivm.address_space<ub>>, f32) outs(%y : memref<8x64xf32, strided<[64, 1], offset: ?>, #hivm.address_space<ub>>)
  }
  return
}
func.func @overlapping(%n: index) attributes {hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>, hivm.func_core_type = #hivm.func_core_type<AIV>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %cst = arith.constant 2.0 : f32
  %p0 = arith.constant 0 : i64
  %x = hivm.hir.pointer_cast(%p0) : memref<64x64xf32, #hivm.address_space<ub>>
  scf.for %i = %c0 to %n step %c1 {
    %c = arith.constant 4 : index
    %row = arith.muli %i, %c : index
    %y = memref.subview %x[%row, 0] [8, 64] [1, 1] : memref<64x64xf32, #hivm.address_space<ub>> to memref<8x64xf32, strided<[64, 1], offset: ?>, #hivm.address_space<ub>>
    hivm.hir.vmul ins(%y, %cst : memref<8x64xf32, strided<[64, 1], offset: ?>, #hivm.address_space<ub>>, f32) outs(%y : memref<8x64xf32, strided<[64, 1], offset: ?>, #hivm.address_space<ub>>)
    hivm.hir.vadd ins(%y, %cst : memref<8x64xf32, strided<[64, 1], offset: ?>, #hivm.address_space<ub>>, f32) outs(%y : memref<8x64xf32, strided<[64, 1], offset: ?>, #hivm.address_space<ub>>)
  }
  return
}
