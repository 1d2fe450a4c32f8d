// RUN: tilelang-npu opt %s -p insert-sync | filecheck %s
// A run of the inner loop starts with the slots that the previous run left: its events are set before and waited for after
// the outer loop.
// CHECK:      hivm.hir.set_flag[<PIPE_V>, <PIPE_MTE2>, <EVENT_ID0>]
// CHECK-NEXT: hivm.hir.set_flag[<PIPE_V>, <PIPE_MTE2>, <EVENT_ID1>]
// CHECK-NEXT: scf.for
// CHECK-NEXT:   scf.for
// CHECK:          hivm.hir.wait_flag[<PIPE_V>, <PIPE_MTE2>, %turn2]
// CHECK-NEXT:     hivm.hir.load
// CHECK-NEXT:     hivm.hir.set_flag[<PIPE_MTE2>, <PIPE_V>, %turn2]
// CHECK-NEXT:     hivm.hir.wait_flag[<PIPE_MTE2>, <PIPE_V>, %turn2]
// CHECK:          hivm.hir.vadd
// CHECK-NEXT:     hivm.hir.set_flag[<PIPE_V>, <PIPE_MTE2>, %turn2]
// CHECK-NEXT:   }
// CHECK-NEXT: }
// CHECK-NEXT: hivm.hir.wait_flag[<PIPE_V>, <PIPE_MTE2>, <EVENT_ID0>]
// CHECK-NEXT: hivm.hir.wait_flag[<PIPE_V>, <PIPE_MTE2>, <EVENT_ID1>]
// CHECK-NOT:  flag
func.func @k(%X: memref<16xf32, #hivm.address_space<gm>>, %n: index) attributes {hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>, hivm.func_core_type = #hivm.func_core_type<AIV>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %i0 = arith.constant 0 : i64
  %i64 = arith.constant 64 : i64
  %i128 = arith.constant 128 : i64
  scf.for %i = %c0 to %n step %c1 {
    scf.for %k = %c0 to %i step %c1 {
      %x = hivm.hir.pointer_cast(%i0, %i64) : memref<16xf32, #hivm.address_space<ub>>
      %y = hivm.hir.pointer_cast(%i128) : memref<16xf32, #hivm.address_space<ub>>
      hivm.hir.load ins(%X : memref<16xf32, #hivm.address_space<gm>>) outs(%x : memref<16xf32, #hivm.address_space<ub>>)
      hivm.hir.vadd ins(%x, %x : memref<16xf32, #hivm.address_space<ub>>, memref<16xf32, #hivm.address_space<ub>>) outs(%y : memref<16xf32, #hivm.address_space<ub>>)
    }
  }
  return
}
