// RUN: tilelang-npu opt %s -p insert-sync | filecheck %s
// Part of each of three slots is used: data that an iteration writes is stored two iterations later, and no iteration waits
// for itself.
// CHECK:      scf.for
// CHECK:        hivm.hir.vexp
// CHECK-NEXT:   hivm.hir.wait_flag[<PIPE_V>, <PIPE_MTE3>, %turn2]
// CHECK-NEXT:   hivm.hir.pipe_barrier[<PIPE_MTE3>]
// CHECK:        hivm.hir.store
// CHECK-NEXT:   hivm.hir.set_flag[<PIPE_MTE3>, <PIPE_V>, <EVENT_ID0>]
// CHECK-NEXT:   hivm.hir.set_flag[<PIPE_V>, <PIPE_MTE3>, %turn2]
func.func @k(%X: memref<32xf32, #hivm.address_space<gm>>) attributes {hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>, hivm.func_core_type = #hivm.func_core_type<AIV>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c9 = arith.constant 9 : index
  %p0 = arith.constant 0 : i64
  %p1 = arith.constant 1024 : i64
  %ring = hivm.hir.pointer_cast(%p0) : memref<3x64xf32, #hivm.address_space<ub>>
  %b = hivm.hir.pointer_cast(%p1) : memref<32xf32, #hivm.address_space<ub>>
  %part = memref.subview %ring[0, 16] [3, 32] [1, 1] : memref<3x64xf32, #hivm.address_space<ub>> to memref<3x32xf32, strided<[64, 1], offset: 16>, #hivm.address_space<ub>>
  scf.for %i = %c0 to %c9 step %c1 {
    %now = arith.remui %i, %c3 : index
    %next = arith.addi %i, %c1 : index
    %old = arith.remui %next, %c3 : index
    %w = memref.subview %part[%now, 0] [1, 32] [1, 1] : memref<3x32xf32, strided<[64, 1], offset: 16>, #hivm.address_space<ub>> to memref<32xf32, strided<[1], offset: ?>, #hivm.address_space<ub>>
    %r = memref.subview %part[%old, 0] [1, 32] [1, 1] : memref<3x32xf32, strided<[64, 1], offset: 16>, #hivm.address_space<ub>> to memref<32xf32, strided<[1], offset: ?>, #hivm.address_space<ub>>
    hivm.hir.vexp ins(%b : memref<32xf32, #hivm.address_space<ub>>) outs(%w : memref<32xf32, strided<[1], offset: ?>, #hivm.address_space<ub>>)
    hivm.hir.store ins(%r : memref<32xf32, strided<[1], offset: ?>, #hivm.address_space<ub>>) outs(%X : memref<32xf32, #hivm.address_space<gm>>)
  }
  return
}
