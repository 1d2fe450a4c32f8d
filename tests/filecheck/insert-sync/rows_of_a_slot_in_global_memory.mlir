// RUN: tilelang-npu opt %s -p insert-sync | filecheck %s
// Each iteration of the inner loop stores separate rows of a ring's slot: the barrier for the reuse of the slot precedes the
// inner loop. If rows overlap, the barrier is in the loop.
// CHECK-LABEL: @apart
// CHECK:         hivm.hir.pipe_barrier[<PIPE_MTE3>]
// CHECK-NEXT:    scf.for
// CHECK-NOT:     pipe_barrier
// CHECK-LABEL: @overlapping
// CHECK:         scf.for
// CHECK:         scf.for
// CHECK:         hivm.hir.pipe_barrier[<PIPE_MTE3>]
// CHECK-NEXT:    hivm.hir.store
func.func @apart(%workspace: memref<?xi8, #hivm.address_space<gm>>, %n: index) attributes {hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>, hivm.func_core_type = #hivm.func_core_type<AIV>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c8 = arith.constant 8 : index
  %c131072 = arith.constant 131072 : index
  %W = memref.view %workspace[%c0][] : memref<?xi8, #hivm.address_space<gm>> to memref<3x131072xf32, #hivm.address_space<gm>>
  %p0 = arith.constant 0 : i64
  %a = hivm.hir.pointer_cast(%p0) : memref<16x512xf32, #hivm.address_space<ub>>
  scf.for %i = %c0 to %n step %c1 {
    %slot = arith.remui %i, %c3 : index
    %at = arith.muli %slot, %c131072 : index
    %w = memref.reinterpret_cast %W to offset: [%at], sizes: [1, 256, 512], strides: [131072, 512, 1] : memref<3x131072xf32, #hivm.address_space<gm>> to memref<1x256x512xf32, strided<[131072, 512, 1], offset: ?>, #hivm.address_space<gm>>
    scf.for %r = %c0 to %c8 step %c1 {
      %c = arith.constant 16 : index
      %row = arith.muli %r, %c : index
      %y = memref.subview %w[0, %row, 0] [1, 16, 512] [1, 1, 1] : memref<1x256x512xf32, strided<[131072, 512, 1], offset: ?>, #hivm.address_space<gm>> to memref<16x512xf32, strided<[512, 1], offset: ?>, #hivm.address_space<gm>>
      hivm.hir.store ins(%a : memref<16x512xf32, #hivm.address_space<ub>>) outs(%y : memref<16x512xf32, strided<[512, 1], offset: ?>, #hivm.address_space<gm>>)
    }
  }
  return
}
func.func @overlapping(%workspace: memref<?xi8, #hivm.address_space<gm>>, %n: index) attributes {hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>, hivm.func_core_type = #hivm.func_core_type<AIV>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c8 = arith.constant 8 : index
  %c131072 = arith.constant 131072 : index
  %W = memref.view %workspace[%c0][] : memref<?xi8, #hivm.address_space<gm>> to memref<3x131072xf32, #hivm.address_space<gm>>
  %p0 = arith.constant 0 : i64
  %a = hivm.hir.pointer_cast(%p0) : memref<16x512xf32, #hivm.address_space<ub>>
  scf.for %i = %c0 to %n step %c1 {
    %slot = arith.remui %i, %c3 : index
    %at = arith.muli %slot, %c131072 : index
    %w = memref.reinterpret_cast %W to offset: [%at], sizes: [1, 256, 512], strides: [131072, 512, 1] : memref<3x131072xf32, #hivm.address_space<gm>> to memref<1x256x512xf32, strided<[131072, 512, 1], offset: ?>, #hivm.address_space<gm>>
    scf.for %r = %c0 to %c8 step %c1 {
      %c = arith.constant 8 : index
      %row = arith.muli %r, %c : index
      %y = memref.subview %w[0, %row, 0] [1, 16, 512] [1, 1, 1] : memref<1x256x512xf32, strided<[131072, 512, 1], offset: ?>, #hivm.address_space<gm>> to memref<16x512xf32, strided<[512, 1], offset: ?>, #hivm.address_space<gm>>
      hivm.hir.store ins(%a : memref<16x512xf32, #hivm.address_space<ub>>) outs(%y : memref<16x512xf32, strided<[512, 1], offset: ?>, #hivm.address_space<gm>>)
    }
  }
  return
}
