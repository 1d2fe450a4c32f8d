// RUN: tilelang-npu opt %s -p insert-sync | filecheck %s
// One branch loads and sets an event, and the next branch waits for it and reads. Both or neither are taken, so this is
// enough, and the load of the next iteration, which waits for the vector work, needs no barrier.
// CHECK:      scf.for
// CHECK-NOT:  pipe_barrier[<PIPE_MTE2>]
// CHECK:        hivm.hir.wait_flag[<PIPE_V>, <PIPE_MTE2>, <EVENT_ID0>]
// CHECK-NEXT:   scf.if
// CHECK-NEXT:     hivm.hir.load
// CHECK-NEXT:   }
// CHECK-NEXT:   scf.if
// CHECK-NEXT:     hivm.hir.load
// CHECK-NEXT:     hivm.hir.set_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID{{.}}>]
// CHECK-NEXT:     hivm.hir.wait_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID{{.}}>]
// CHECK-NEXT:     hivm.hir.vadd
// CHECK-NOT:  pipe_barrier[<PIPE_MTE2>]
// CHECK:        hivm.hir.set_flag[<PIPE_V>, <PIPE_MTE2>, <EVENT_ID0>]
func.func @k(%X: memref<64xf32, #hivm.address_space<gm>>, %c: i1) attributes {hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>, hivm.func_core_type = #hivm.func_core_type<AIV>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  %p0 = arith.constant 0 : i64
  %p1 = arith.constant 256 : i64
  %a = hivm.hir.pointer_cast(%p0) : memref<64xf32, #hivm.address_space<ub>>
  %b = hivm.hir.pointer_cast(%p1) : memref<64xf32, #hivm.address_space<ub>>
  scf.for %i = %c0 to %c9 step %c1 {
    scf.if %c {
      hivm.hir.load ins(%X : memref<64xf32, #hivm.address_space<gm>>) outs(%a : memref<64xf32, #hivm.address_space<ub>>)
    }
    scf.if %c {
      hivm.hir.load ins(%X : memref<64xf32, #hivm.address_space<gm>>) outs(%b : memref<64xf32, #hivm.address_space<ub>>)
      hivm.hir.vadd ins(%a, %b : memref<64xf32, #hivm.address_space<ub>>, memref<64xf32, #hivm.address_space<ub>>) outs(%b : memref<64xf32, #hivm.address_space<ub>>)
    }
  }
  return
}
