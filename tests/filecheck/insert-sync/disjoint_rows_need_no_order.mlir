// RUN: tilelang-npu opt %s -p insert-sync | filecheck %s
// Each iteration stores separate rows: the stores need no order.
// CHECK-NOT: hivm.hir.pipe_barrier
func.func @k(%Y: memref<64x64xf32, #hivm.address_space<gm>>, %n: index) attributes {hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>, hivm.func_core_type = #hivm.func_core_type<AIV>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %p0 = arith.constant 0 : i64
  %a = hivm.hir.pointer_cast(%p0) : memref<8x64xf32, #hivm.address_space<ub>>
  scf.for %i = %c0 to %n step %c1 {
    %row = arith.muli %i, %c8 : index
    %y = memref.subview %Y[%row, 0] [8, 64] [1, 1] : memref<64x64xf32, #hivm.address_space<gm>> to memref<8x64xf32, strided<[64, 1], offset: ?>, #hivm.address_space<gm>>
    hivm.hir.store ins(%a : memref<8x64xf32, #hivm.address_space<ub>>) outs(%y : memref<8x64xf32, strided<[64, 1], offset: ?>, #hivm.address_space<gm>>)
  }
  return
}
