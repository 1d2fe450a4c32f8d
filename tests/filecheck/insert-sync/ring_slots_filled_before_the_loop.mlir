// RUN: tilelang-npu opt %s -p insert-sync | filecheck %s
// Slots 0 and 1 of a ring of three are filled before the loop. The loop fills slot 2 first, and slots 0 and 1 later, after
// it has waited for their readers. The loop fills slot 1 last but two, and slot 0 last: one load after the loop waits.
// CHECK:      hivm.hir.load
// CHECK-NOT:  pipe_barrier
// CHECK:      hivm.hir.load
// CHECK-NOT:  pipe_barrier
// CHECK:      scf.for
// CHECK-NOT:    pipe_barrier
// CHECK:        hivm.hir.load
// CHECK:      }
// CHECK-NOT:  pipe_barrier
// CHECK:      hivm.hir.load
// CHECK-NEXT: hivm.hir.pipe_barrier[<PIPE_MTE2>]
// CHECK-NEXT: hivm.hir.load
func.func @k(%X: memref<64xf32, #hivm.address_space<gm>>) attributes {hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>, hivm.func_core_type = #hivm.func_core_type<AIV>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c8 = arith.constant 8 : index
  %p0 = arith.constant 0 : i64
  %p1 = arith.constant 1024 : i64
  %ring = hivm.hir.pointer_cast(%p0) : memref<3x64xf32, #hivm.address_space<ub>>
  %b = hivm.hir.pointer_cast(%p1) : memref<64xf32, #hivm.address_space<ub>>
  %s0 = memref.subview %ring[0, 0] [1, 64] [1, 1] : memref<3x64xf32, #hivm.address_space<ub>> to memref<64xf32, strided<[1]>, #hivm.address_space<ub>>
  %s1 = memref.subview %ring[1, 0] [1, 64] [1, 1] : memref<3x64xf32, #hivm.address_space<ub>> to memref<64xf32, strided<[1], offset: 64>, #hivm.address_space<ub>>
  hivm.hir.load ins(%X : memref<64xf32, #hivm.address_space<gm>>) outs(%s0 : memref<64xf32, strided<[1]>, #hivm.address_space<ub>>)
  hivm.hir.load ins(%X : memref<64xf32, #hivm.address_space<gm>>) outs(%s1 : memref<64xf32, strided<[1], offset: 64>, #hivm.address_space<ub>>)
  scf.for %i = %c0 to %c8 step %c1 {
    %next = arith.addi %i, %c2 : index
    %new = arith.remui %next, %c3 : index
    %now = arith.remui %i, %c3 : index
    %w = memref.subview %ring[%new, 0] [1, 64] [1, 1] : memref<3x64xf32, #hivm.address_space<ub>> to memref<64xf32, strided<[1], offset: ?>, #hivm.address_space<ub>>
    %r = memref.subview %ring[%now, 0] [1, 64] [1, 1] : memref<3x64xf32, #hivm.address_space<ub>> to memref<64xf32, strided<[1], offset: ?>, #hivm.address_space<ub>>
    hivm.hir.load ins(%X : memref<64xf32, #hivm.address_space<gm>>) outs(%w : memref<64xf32, strided<[1], offset: ?>, #hivm.address_space<ub>>)
    hivm.hir.vexp ins(%r : memref<64xf32, strided<[1], offset: ?>, #hivm.address_space<ub>>) outs(%b : memref<64xf32, #hivm.address_space<ub>>)
  }
  hivm.hir.load ins(%X : memref<64xf32, #hivm.address_space<gm>>) outs(%s1 : memref<64xf32, strided<[1], offset: 64>, #hivm.address_space<ub>>)
  hivm.hir.load ins(%X : memref<64xf32, #hivm.address_space<gm>>) outs(%s0 : memref<64xf32, strided<[1]>, #hivm.address_space<ub>>)
  return
}
