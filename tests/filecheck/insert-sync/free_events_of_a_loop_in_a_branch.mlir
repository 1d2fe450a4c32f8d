// RUN: tilelang-npu opt %s -p insert-sync | filecheck %s
// As with a loop in a loop, but with a branch between them: the free events are set around the outer loop, whichever of its
// iterations take the branch, and the first load of a run waits only for its own slot. The inner loop never reuses a slot
// within a run; the next run does.
// CHECK-DAG:  hivm.hir.set_flag[<PIPE_V>, <PIPE_MTE2>, <EVENT_ID0>]
// CHECK-DAG:  hivm.hir.set_flag[<PIPE_V>, <PIPE_MTE2>, <EVENT_ID1>]
// CHECK:      scf.for
// CHECK-NOT:  flag
// CHECK:        scf.if
// CHECK-NOT:    flag
// CHECK:          scf.for
// CHECK:            hivm.hir.wait_flag[<PIPE_V>, <PIPE_MTE2>, [[TURN:%.+]]]
// CHECK-NEXT:       hivm.hir.load
// CHECK-NEXT:       hivm.hir.set_flag[<PIPE_MTE2>, <PIPE_V>, [[TURN]]]
// CHECK-NEXT:       hivm.hir.wait_flag[<PIPE_MTE2>, <PIPE_V>, [[TURN]]]
// CHECK-NEXT:       hivm.hir.vrelu
// CHECK-NEXT:       hivm.hir.set_flag[<PIPE_V>, <PIPE_MTE2>, [[TURN]]]
// CHECK-NEXT:     }
// CHECK-NEXT:   }
// CHECK-NEXT: }
// CHECK-NEXT: hivm.hir.wait_flag[<PIPE_V>, <PIPE_MTE2>, <EVENT_ID0>]
// CHECK-NEXT: hivm.hir.wait_flag[<PIPE_V>, <PIPE_MTE2>, <EVENT_ID1>]
// CHECK-NEXT: return
func.func @k(%X: memref<64xf32, #hivm.address_space<gm>>, %n: index) attributes {hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>, hivm.func_core_type = #hivm.func_core_type<AIV>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %p0 = arith.constant 0 : i64
  %p1 = arith.constant 256 : i64
  scf.for %i = %c0 to %n step %c1 {
    %odd = arith.cmpi ne, %i, %c1 : index
    scf.if %odd {
      scf.for %j = %c0 to %c2 step %c1 {
        %a = hivm.hir.pointer_cast(%p0, %p1) : memref<64xf32, #hivm.address_space<ub>>
        hivm.hir.load ins(%X : memref<64xf32, #hivm.address_space<gm>>) outs(%a : memref<64xf32, #hivm.address_space<ub>>)
        hivm.hir.vrelu ins(%a : memref<64xf32, #hivm.address_space<ub>>) outs(%a : memref<64xf32, #hivm.address_space<ub>>)
      }
    }
  }
  return
}
