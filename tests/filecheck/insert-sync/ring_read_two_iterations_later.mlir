// RUN: tilelang-npu opt %s -p insert-sync | filecheck %s
// A ring of three slots: data that an iteration writes is stored two iterations later, and overwritten in the iteration
// after that. The write precedes the store, so an event set directly after the store would have one more set outstanding
// than there are iterations between. The set therefore follows the wait, with event ids that alternate over two iterations;
// until then its pipe has no other work.
// CHECK:      hivm.hir.set_flag[<PIPE_MTE3>, <PIPE_V>, <EVENT_ID0>]
// CHECK-NEXT: hivm.hir.set_flag[<PIPE_V>, <PIPE_MTE3>, <EVENT_ID0>]
// CHECK-NEXT: hivm.hir.set_flag[<PIPE_V>, <PIPE_MTE3>, <EVENT_ID1>]
// CHECK-NEXT: scf.for
// CHECK:        hivm.hir.wait_flag[<PIPE_MTE3>, <PIPE_V>, <EVENT_ID0>]
// CHECK:        hivm.hir.vexp
// CHECK-NEXT:   hivm.hir.wait_flag[<PIPE_V>, <PIPE_MTE3>, %turn2]
// CHECK-NEXT:   hivm.hir.pipe_barrier[<PIPE_MTE3>]
// CHECK:        hivm.hir.store
// CHECK-NEXT:   hivm.hir.set_flag[<PIPE_MTE3>, <PIPE_V>, <EVENT_ID0>]
// CHECK-NEXT:   hivm.hir.set_flag[<PIPE_V>, <PIPE_MTE3>, %turn2]
func.func @k(%X: memref<64xf32, #hivm.address_space<gm>>) attributes {hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>, hivm.func_core_type = #hivm.func_core_type<AIV>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c9 = arith.constant 9 : index
  %p0 = arith.constant 0 : i64
  %p1 = arith.constant 1024 : i64
  %ring = hivm.hir.pointer_cast(%p0) : memref<3x64xf32, #hivm.address_space<ub>>
  %b = hivm.hir.pointer_cast(%p1) : memref<64xf32, #hivm.address_space<ub>>
  scf.for %i = %c0 to %c9 step %c1 {
    %now = arith.remui %i, %c3 : index
    %next = arith.addi %i, %c1 : index
    %old = arith.remui %next, %c3 : index
    %w = memref.subview %ring[%now, 0] [1, 64] [1, 1] : memref<3x64xf32, #hivm.address_space<ub>> to memref<64xf32, strided<[1], offset: ?>, #hivm.address_space<ub>>
    %r = memref.subview %ring[%old, 0] [1, 64] [1, 1] : memref<3x64xf32, #hivm.address_space<ub>> to memref<64xf32, strided<[1], offset: ?>, #hivm.address_space<ub>>
    hivm.hir.vexp ins(%b : memref<64xf32, #hivm.address_space<ub>>) outs(%w : memref<64xf32, strided<[1], offset: ?>, #hivm.address_space<ub>>)
    hivm.hir.store ins(%r : memref<64xf32, strided<[1], offset: ?>, #hivm.address_space<ub>>) outs(%X : memref<64xf32, #hivm.address_space<gm>>)
  }
  return
}
