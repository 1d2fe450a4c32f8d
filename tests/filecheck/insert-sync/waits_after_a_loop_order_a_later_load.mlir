// RUN: tilelang-npu opt %s -p insert-sync | filecheck %s
// The tile of the inner loop is loaded again after the loop. The waits for the loop's free events after the loop order this
// load, so it needs no additional event.
// CHECK:      scf.for
// CHECK-NEXT:   hivm.hir.set_flag[<PIPE_V>, <PIPE_MTE2>, <EVENT_ID1>]
// CHECK-NEXT:   scf.for
// CHECK:        }
// CHECK-NEXT:   hivm.hir.wait_flag[<PIPE_V>, <PIPE_MTE2>, <EVENT_ID1>]
// CHECK-NEXT:   hivm.hir.wait_flag[<PIPE_V>, <PIPE_MTE2>, <EVENT_ID0>]
// CHECK-NEXT:   hivm.hir.load
func.func @k(%X: memref<16xf32, #hivm.address_space<gm>>, %n: index) attributes {hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>, hivm.func_core_type = #hivm.func_core_type<AIV>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %i0 = arith.constant 0 : i64
  %i64 = arith.constant 64 : i64
  %i128 = arith.constant 128 : i64
  %x = hivm.hir.pointer_cast(%i0) : memref<16xf32, #hivm.address_space<ub>>
  %y = hivm.hir.pointer_cast(%i128) : memref<16xf32, #hivm.address_space<ub>>
  scf.for %i = %c0 to %n step %c1 {
    scf.for %k = %c0 to %i step %c1 {
      hivm.hir.load ins(%X : memref<16xf32, #hivm.address_space<gm>>) outs(%x : memref<16xf32, #hivm.address_space<ub>>)
      hivm.hir.vadd ins(%x, %x : memref<16xf32, #hivm.address_space<ub>>, memref<16xf32, #hivm.address_space<ub>>) outs(%y : memref<16xf32, #hivm.address_space<ub>>)
    }
    hivm.hir.load ins(%X : memref<16xf32, #hivm.address_space<gm>>) outs(%x : memref<16xf32, #hivm.address_space<ub>>)
    hivm.hir.vadd ins(%x, %x : memref<16xf32, #hivm.address_space<ub>>, memref<16xf32, #hivm.address_space<ub>>) outs(%y : memref<16xf32, #hivm.address_space<ub>>)
  }
  return
}
