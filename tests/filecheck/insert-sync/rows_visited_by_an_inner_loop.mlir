// RUN: tilelang-npu opt %s -p insert-sync | filecheck %s
// Each iteration has 32 rows, eight for each of the four iterations of its inner loop. With five inner iterations, the last
// one overwrites the first rows of the next outer iteration.
// CHECK-LABEL: @apart
// CHECK-NOT:     pipe_barrier
// CHECK-LABEL: @too_many
// CHECK:         hivm.hir.pipe_barrier[<PIPE_MTE3>]
func.func @apart(%Y: memref<64x64xf32, #hivm.address_space<gm>>, %n: index) attributes {hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>, hivm.func_core_type = #hivm.func_core_type<AIV>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c32 = arith.constant 32 : index
  %t = arith.constant 4 : index
  %p0 = arith.constant 0 : i64
  %a = hivm.hir.pointer_cast(%p0) : memref<8x64xf32, #hivm.address_space<ub>>
  scf.for %i = %c0 to %n step %c1 {
    %first = arith.muli %i, %c32 : index
    scf.for %r = %c0 to %t step %c1 {
      %at = arith.muli %r, %c8 : index
      %row = arith.addi %first, %at : index
      %y = memref.subview %Y[%row, 0] [8, 64] [1, 1] : memref<64x64xf32, #hivm.address_space<gm>> to memref<8x64xf32, strided<[64, 1], offset: ?>, #hivm.address_space<gm>>
      hivm.hir.store ins(%a : memref<8x64xf32, #hivm.address_space<ub>>) outs(%y : memref<8x64xf32, strided<[64, 1], offset: ?>, #hivm.address_space<gm>>)
    }
  }
  return
}
func.func @too_many(%Y: memref<64x64xf32, #hivm.address_space<gm>>, %n: index) attributes {hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>, hivm.func_core_type = #hivm.func_core_type<AIV>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c32 = arith.constant 32 : index
  %t = arith.constant 5 : index
  %p0 = arith.constant 0 : i64
  %a = hivm.hir.pointer_cast(%p0) : memref<8x64xf32, #hivm.address_space<ub>>
  scf.for %i = %c0 to %n step %c1 {
    %first = arith.muli %i, %c32 : index
    scf.for %r = %c0 to %t step %c1 {
      %at = arith.muli %r, %c8 : index
      %row = arith.addi %first, %at : index
      %y = memref.subview %Y[%row, 0] [8, 64] [1, 1] : memref<64x64xf32, #hivm.address_space<gm>> to memref<8x64xf32, strided<[64, 1], offset: ?>, #hivm.address_space<gm>>
      hivm.hir.store ins(%a : memref<8x64xf32, #hivm.address_space<ub>>) outs(%y : memref<8x64xf32, strided<[64, 1], offset: ?>, #hivm.address_space<gm>>)
    }
  }
  return
}
