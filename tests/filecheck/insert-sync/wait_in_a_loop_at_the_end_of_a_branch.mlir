// RUN: tilelang-npu opt %s -p insert-sync | filecheck %s
// A later iteration loads the first tile of the branch again. The loop that ends the branch has at least one iteration, in
// which the Vector unit waits for the loaded data. Later vector work therefore follows this load, and the next load waits
// for that work: the loads need no barrier.
// CHECK:      scf.for
// CHECK-NOT:  pipe_barrier[<PIPE_MTE2>]
// CHECK:      return
func.func @k(%X: memref<64xf32, #hivm.address_space<gm>>, %c: i1, %d: i1, %n: index) attributes {hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>, hivm.func_core_type = #hivm.func_core_type<AIV>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %p0 = arith.constant 0 : i64
  %p1 = arith.constant 256 : i64
  %a = hivm.hir.pointer_cast(%p0) : memref<64xf32, #hivm.address_space<ub>>
  %b = hivm.hir.pointer_cast(%p1) : memref<64xf32, #hivm.address_space<ub>>
  scf.for %i = %c0 to %n step %c1 {
    scf.if %c {
      scf.if %d {
        hivm.hir.load ins(%X : memref<64xf32, #hivm.address_space<gm>>) outs(%a : memref<64xf32, #hivm.address_space<ub>>)
      }
      scf.for %j = %c0 to %c4 step %c1 {
        hivm.hir.load ins(%X : memref<64xf32, #hivm.address_space<gm>>) outs(%b : memref<64xf32, #hivm.address_space<ub>>)
        hivm.hir.vadd ins(%a, %b : memref<64xf32, #hivm.address_space<ub>>, memref<64xf32, #hivm.address_space<ub>>) outs(%b : memref<64xf32, #hivm.address_space<ub>>)
      }
    }
  }
  return
}
