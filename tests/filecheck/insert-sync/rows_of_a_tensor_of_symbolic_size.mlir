// RUN: tilelang-npu opt %s -p insert-sync | filecheck %s
// The tensor has a symbolic number of rows and is a flat argument with this shape: each iteration stores separate rows.
// CHECK-NOT: hivm.hir.pipe_barrier
func.func @k(%Y: memref<?xf32, #hivm.address_space<gm>>, %m: index, %n: index) attributes {hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>, hivm.func_core_type = #hivm.func_core_type<AIV>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c8 = arith.constant 8 : index
  %p0 = arith.constant 0 : i64
  %a = hivm.hir.pointer_cast(%p0) : memref<8x64xf32, #hivm.address_space<ub>>
  %y = memref.reinterpret_cast %Y to offset: [0], sizes: [%m, 64], strides: [64, 1] : memref<?xf32, #hivm.address_space<gm>> to memref<?x64xf32, strided<[64, 1]>, #hivm.address_space<gm>>
  scf.for %i = %c0 to %n step %c1 {
    %row = arith.muli %i, %c8 : index
    %rows = memref.subview %y[%row, 0] [8, 64] [1, 1] : memref<?x64xf32, strided<[64, 1]>, #hivm.address_space<gm>> to memref<8x64xf32, strided<[64, 1], offset: ?>, #hivm.address_space<gm>>
    hivm.hir.store ins(%a : memref<8x64xf32, #hivm.address_space<ub>>) outs(%rows : memref<8x64xf32, strided<[64, 1], offset: ?>, #hivm.address_space<gm>>)
  }
  return
}
