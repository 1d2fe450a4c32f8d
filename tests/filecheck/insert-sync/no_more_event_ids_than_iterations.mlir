// RUN: tilelang-npu opt %s -p insert-sync | filecheck %s
// Four slots, and two iterations in a run: two event ids alternate, and the next run waits for the same iteration of the
// previous run.
// CHECK:      hivm.hir.set_flag[<PIPE_V>, <PIPE_MTE2>, <EVENT_ID0>]
// CHECK-NEXT: hivm.hir.set_flag[<PIPE_V>, <PIPE_MTE2>, <EVENT_ID1>]
// CHECK-NOT:  <EVENT_ID2>
// CHECK:      scf.for
// CHECK:        scf.for
// CHECK:          arith.remui
// CHECK:          hivm.hir.wait_flag[<PIPE_V>, <PIPE_MTE2>, %turn2]
// CHECK-NEXT:     hivm.hir.load
// CHECK:          hivm.hir.vrelu
// CHECK-NEXT:     hivm.hir.set_flag[<PIPE_V>, <PIPE_MTE2>, %turn2]
// CHECK-NOT:  <EVENT_ID2>
// CHECK:      return
func.func @k(%X: memref<64xf32, #hivm.address_space<gm>>, %n: index) attributes {hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>, hivm.func_core_type = #hivm.func_core_type<AIV>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %p0 = arith.constant 0 : i64
  %p1 = arith.constant 256 : i64
  %p2 = arith.constant 512 : i64
  %p3 = arith.constant 768 : i64
  %p4 = arith.constant 1024 : i64
  %b = hivm.hir.pointer_cast(%p4) : memref<64xf32, #hivm.address_space<ub>>
  scf.for %t = %c0 to %n step %c1 {
    scf.for %i = %c0 to %c2 step %c1 {
      %a = hivm.hir.pointer_cast(%p0, %p1, %p2, %p3) : memref<64xf32, #hivm.address_space<ub>>
      hivm.hir.load ins(%X : memref<64xf32, #hivm.address_space<gm>>) outs(%a : memref<64xf32, #hivm.address_space<ub>>)
      hivm.hir.vrelu ins(%a : memref<64xf32, #hivm.address_space<ub>>) outs(%b : memref<64xf32, #hivm.address_space<ub>>)
    }
  }
  return
}
