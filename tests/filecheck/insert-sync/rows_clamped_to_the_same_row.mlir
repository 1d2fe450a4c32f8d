// RUN: tilelang-npu opt %s -p insert-sync | filecheck %s
// The branch runs from iteration 1 on: the bound clamps the rows of the first two of these iterations to the same row.
// CHECK: hivm.hir.pipe_barrier[<PIPE_MTE3>]
func.func @k(%Y: memref<64x64xf32, #hivm.address_space<gm>>, %n: index) attributes {hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>, hivm.func_core_type = #hivm.func_core_type<AIV>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c8 = arith.constant 8 : index
  %p0 = arith.constant 0 : i64
  %a = hivm.hir.pointer_cast(%p0) : memref<8x64xf32, #hivm.address_space<ub>>
  scf.for %i = %c0 to %n step %c1 {
    %runs = arith.cmpi sge, %i, %c1 : index
    scf.if %runs {
      %back = arith.subi %i, %c2 : index
      %at = arith.maxsi %back, %c0 : index
      %row = arith.muli %at, %c8 : index
      %rows = memref.subview %Y[%row, 0] [8, 64] [1, 1] : memref<64x64xf32, #hivm.address_space<gm>> to memref<8x64xf32, strided<[64, 1], offset: ?>, #hivm.address_space<gm>>
      hivm.hir.store ins(%a : memref<8x64xf32, #hivm.address_space<ub>>) outs(%rows : memref<8x64xf32, strided<[64, 1], offset: ?>, #hivm.address_space<gm>>)
    }
  }
  return
}
