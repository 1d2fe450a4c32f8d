// RUN: tilelang-npu opt %s -p insert-sync | filecheck %s
// The load is wider than a column of the grid: the next iteration loads data that this one stores.
// CHECK:      scf.for
// CHECK:        hivm.hir.wait_flag[<PIPE_MTE3>, <PIPE_MTE2>
// CHECK-NEXT:   hivm.hir.load
func.func @k(%Y: memref<128x128xf32, #hivm.address_space<gm>>, %n: index) attributes {hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>, hivm.func_core_type = #hivm.func_core_type<AIV>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c32 = arith.constant 32 : index
  %p0 = arith.constant 0 : i64
  %p1 = arith.constant 65536 : i64
  %a = hivm.hir.pointer_cast(%p0) : memref<32x32xf32, #hivm.address_space<ub>>
  %b = hivm.hir.pointer_cast(%p1) : memref<32x64xf32, #hivm.address_space<ub>>
  scf.for %i = %c0 to %n step %c1 {
    %q = arith.divui %i, %c4 : index
    %r = arith.remui %i, %c4 : index
    %row = arith.muli %q, %c32 : index
    %column = arith.muli %r, %c32 : index
    %y = memref.subview %Y[%row, %column] [32, 32] [1, 1] : memref<128x128xf32, #hivm.address_space<gm>> to memref<32x32xf32, strided<[128, 1], offset: ?>, #hivm.address_space<gm>>
    %z = memref.subview %Y[%row, %column] [32, 64] [1, 1] : memref<128x128xf32, #hivm.address_space<gm>> to memref<32x64xf32, strided<[128, 1], offset: ?>, #hivm.address_space<gm>>
    hivm.hir.load ins(%z : memref<32x64xf32, strided<[128, 1], offset: ?>, #hivm.address_space<gm>>) outs(%b : memref<32x64xf32, #hivm.address_space<ub>>)
    hivm.hir.store ins(%a : memref<32x32xf32, #hivm.address_space<ub>>) outs(%y : memref<32x32xf32, strided<[128, 1], offset: ?>, #hivm.address_space<gm>>)
  }
  return
}
