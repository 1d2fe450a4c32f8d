// RUN: tilelang-npu opt %s -p insert-sync | filecheck %s
// The loop has at least one iteration, in which the Vector unit's work waits for the load; so its work after the loop
// follows the load, too.
// CHECK:      hivm.hir.load
// CHECK-NOT:  hivm.hir.set_flag[<PIPE_MTE2>, <PIPE_V>
// CHECK:      scf.for
// CHECK:      }
// CHECK-NOT:  hivm.hir.wait_flag[<PIPE_MTE2>, <PIPE_V>
// CHECK:      hivm.hir.vrelu
// CHECK:      return
func.func @k(%X: memref<64xf32, #hivm.address_space<gm>>, %n: index) attributes {hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>, hivm.func_core_type = #hivm.func_core_type<AIV>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %p0 = arith.constant 0 : i64
  %p1 = arith.constant 256 : i64
  %a = hivm.hir.pointer_cast(%p0) : memref<64xf32, #hivm.address_space<ub>>
  %b = hivm.hir.pointer_cast(%p1) : memref<64xf32, #hivm.address_space<ub>>
  hivm.hir.load ins(%X : memref<64xf32, #hivm.address_space<gm>>) outs(%a : memref<64xf32, #hivm.address_space<ub>>)
  scf.for %j = %c0 to %c4 step %c1 {
    hivm.hir.load ins(%X : memref<64xf32, #hivm.address_space<gm>>) outs(%b : memref<64xf32, #hivm.address_space<ub>>)
    hivm.hir.vrelu ins(%b : memref<64xf32, #hivm.address_space<ub>>) outs(%b : memref<64xf32, #hivm.address_space<ub>>)
  }
  hivm.hir.vrelu ins(%a : memref<64xf32, #hivm.address_space<ub>>) outs(%a : memref<64xf32, #hivm.address_space<ub>>)
  return
}
