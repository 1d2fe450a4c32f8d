// RUN: tilelang-npu opt %s -p insert-sync | filecheck %s
// Both loads precede the event in the loop, so the load before the loop needs no separate event.
// CHECK:      hivm.hir.load
// CHECK-NOT:  hivm.hir.set_flag[<PIPE_MTE2>, <PIPE_V>
// CHECK:      scf.for
// CHECK:        hivm.hir.load
// CHECK-NEXT:   hivm.hir.set_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID0>]
// CHECK-NEXT:   hivm.hir.wait_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID0>]
// CHECK-NEXT:   hivm.hir.vadd
func.func @k(%X: memref<64xf32, #hivm.address_space<gm>>, %n: index) attributes {hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>, hivm.func_core_type = #hivm.func_core_type<AIV>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %p0 = arith.constant 0 : i64
  %p1 = arith.constant 256 : i64
  %p2 = arith.constant 512 : i64
  %a = hivm.hir.pointer_cast(%p0) : memref<64xf32, #hivm.address_space<ub>>
  %b = hivm.hir.pointer_cast(%p1) : memref<64xf32, #hivm.address_space<ub>>
  %s = hivm.hir.pointer_cast(%p2) : memref<64xf32, #hivm.address_space<ub>>
  hivm.hir.load ins(%X : memref<64xf32, #hivm.address_space<gm>>) outs(%a : memref<64xf32, #hivm.address_space<ub>>)
  scf.for %j = %c0 to %n step %c1 {
    hivm.hir.load ins(%X : memref<64xf32, #hivm.address_space<gm>>) outs(%b : memref<64xf32, #hivm.address_space<ub>>)
    hivm.hir.vadd ins(%a, %b : memref<64xf32, #hivm.address_space<ub>>, memref<64xf32, #hivm.address_space<ub>>) outs(%s : memref<64xf32, #hivm.address_space<ub>>)
  }
  return
}
