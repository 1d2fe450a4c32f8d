// RUN: tilelang-npu opt %s -p insert-sync | filecheck %s
// The byte range of a column half includes most of the other half, but their accesses are disjoint: for any number of rows,
// through views of views, and in one row with a computed number. Columns that overlap are ordered.
// CHECK-LABEL: func.func @halves
// CHECK:         hivm.hir.load
// CHECK-NOT:     pipe_barrier
// CHECK:         hivm.hir.load
// CHECK-NOT:     pipe_barrier
// CHECK:         hivm.hir.load
// CHECK-NOT:     pipe_barrier
// CHECK:         hivm.hir.load
// CHECK-NEXT:    hivm.hir.pipe_barrier[<PIPE_MTE2>]
// CHECK-NEXT:    hivm.hir.load
func.func @halves(%X: memref<?x256xf32, #hivm.address_space<gm>>, %Y: memref<1x256xf32, #hivm.address_space<gm>>, %rows: index, %row: index) attributes {hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>, hivm.func_core_type = #hivm.func_core_type<AIV>} {
  %p0 = arith.constant 0 : i64
  %p1 = arith.constant 65536 : i64
  %a = hivm.hir.pointer_cast(%p0) : memref<32x512xf32, #hivm.address_space<ub>>
  %b = hivm.hir.pointer_cast(%p1) : memref<16x512xf32, #hivm.address_space<ub>>
  %left = memref.subview %a[0, 0] [%rows, 256] [1, 1] : memref<32x512xf32, #hivm.address_space<ub>> to memref<?x256xf32, strided<[512, 1]>, #hivm.address_space<ub>>
  %all = memref.subview %a[0, 0] [%rows, 512] [1, 1] : memref<32x512xf32, #hivm.address_space<ub>> to memref<?x512xf32, strided<[512, 1]>, #hivm.address_space<ub>>
  %right = memref.subview %all[0, 256] [%rows, 256] [1, 1] : memref<?x512xf32, strided<[512, 1]>, #hivm.address_space<ub>> to memref<?x256xf32, strided<[512, 1], offset: 256>, #hivm.address_space<ub>>
  %one = memref.subview %b[%row, 0] [1, 256] [1, 1] : memref<16x512xf32, #hivm.address_space<ub>> to memref<1x256xf32, strided<[512, 1], offset: ?>, #hivm.address_space<ub>>
  %two = memref.subview %b[0, 256] [1, 256] [1, 1] : memref<16x512xf32, #hivm.address_space<ub>> to memref<1x256xf32, strided<[512, 1], offset: 256>, #hivm.address_space<ub>>
  %across = memref.subview %b[0, 128] [1, 256] [1, 1] : memref<16x512xf32, #hivm.address_space<ub>> to memref<1x256xf32, strided<[512, 1], offset: 128>, #hivm.address_space<ub>>
  hivm.hir.load ins(%X : memref<?x256xf32, #hivm.address_space<gm>>) outs(%left : memref<?x256xf32, strided<[512, 1]>, #hivm.address_space<ub>>)
  hivm.hir.load ins(%X : memref<?x256xf32, #hivm.address_space<gm>>) outs(%right : memref<?x256xf32, strided<[512, 1], offset: 256>, #hivm.address_space<ub>>)
  hivm.hir.load ins(%Y : memref<1x256xf32, #hivm.address_space<gm>>) outs(%one : memref<1x256xf32, strided<[512, 1], offset: ?>, #hivm.address_space<ub>>)
  hivm.hir.load ins(%Y : memref<1x256xf32, #hivm.address_space<gm>>) outs(%two : memref<1x256xf32, strided<[512, 1], offset: 256>, #hivm.address_space<ub>>)
  hivm.hir.load ins(%Y : memref<1x256xf32, #hivm.address_space<gm>>) outs(%across : memref<1x256xf32, strided<[512, 1], offset: 128>, #hivm.address_space<ub>>)
  return
}
