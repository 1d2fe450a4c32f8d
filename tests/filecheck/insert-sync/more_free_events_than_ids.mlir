// RUN: tilelang-npu opt %s -p insert-sync | filecheck %s
// A loop that uses each slot once has a free event for each slot, for its next run: four event ids.
// CHECK-LABEL: @one
// CHECK:       set_flag[<PIPE_V>, <PIPE_MTE2>, <EVENT_ID3>]
// CHECK:       scf.for %t
// Two loops would need eight, more than there are: the next run of the second one waits for this run, with one event id.
// CHECK-LABEL: @two
// CHECK:       set_flag[<PIPE_V>, <PIPE_MTE2>, <EVENT_ID4>]
// CHECK-NEXT:  scf.for %t
// CHECK-NEXT:    scf.for %i
// CHECK:         wait_flag[<PIPE_V>, <PIPE_MTE2>, <EVENT_ID4>]
// CHECK-NEXT:    scf.for %j
// CHECK:         }
// CHECK-NEXT:    hivm.hir.set_flag[<PIPE_V>, <PIPE_MTE2>, <EVENT_ID4>]
// CHECK-NEXT:  }
func.func @one(%X: memref<64xf32, #hivm.address_space<gm>>, %n: index) attributes {hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>, hivm.func_core_type = #hivm.func_core_type<AIV>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %p0 = arith.constant 0 : i64
  %p1 = arith.constant 256 : i64
  %p2 = arith.constant 512 : i64
  %p3 = arith.constant 768 : i64
  %p4 = arith.constant 1024 : i64
  %p5 = arith.constant 1280 : i64
  %p6 = arith.constant 1536 : i64
  %p7 = arith.constant 1792 : i64
  scf.for %t = %c0 to %n step %c1 {
    scf.for %i = %c0 to %c4 step %c1 {
      %ia = hivm.hir.pointer_cast(%p0, %p1, %p2, %p3) : memref<64xf32, #hivm.address_space<ub>>
      hivm.hir.load ins(%X : memref<64xf32, #hivm.address_space<gm>>) outs(%ia : memref<64xf32, #hivm.address_space<ub>>)
      hivm.hir.vexp ins(%ia : memref<64xf32, #hivm.address_space<ub>>) outs(%ia : memref<64xf32, #hivm.address_space<ub>>)
    }
  }
  return
}
func.func @two(%X: memref<64xf32, #hivm.address_space<gm>>, %n: index) attributes {hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>, hivm.func_core_type = #hivm.func_core_type<AIV>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %p0 = arith.constant 0 : i64
  %p1 = arith.constant 256 : i64
  %p2 = arith.constant 512 : i64
  %p3 = arith.constant 768 : i64
  %p4 = arith.constant 1024 : i64
  %p5 = arith.constant 1280 : i64
  %p6 = arith.constant 1536 : i64
  %p7 = arith.constant 1792 : i64
  scf.for %t = %c0 to %n step %c1 {
    scf.for %i = %c0 to %c4 step %c1 {
      %ia = hivm.hir.pointer_cast(%p0, %p1, %p2, %p3) : memref<64xf32, #hivm.address_space<ub>>
      hivm.hir.load ins(%X : memref<64xf32, #hivm.address_space<gm>>) outs(%ia : memref<64xf32, #hivm.address_space<ub>>)
      hivm.hir.vexp ins(%ia : memref<64xf32, #hivm.address_space<ub>>) outs(%ia : memref<64xf32, #hivm.address_space<ub>>)
    }
    scf.for %j = %c0 to %c4 step %c1 {
      %ja = hivm.hir.pointer_cast(%p4, %p5, %p6, %p7) : memref<64xf32, #hivm.address_space<ub>>
      hivm.hir.load ins(%X : memref<64xf32, #hivm.address_space<gm>>) outs(%ja : memref<64xf32, #hivm.address_space<ub>>)
      hivm.hir.vexp ins(%ja : memref<64xf32, #hivm.address_space<ub>>) outs(%ja : memref<64xf32, #hivm.address_space<ub>>)
    }
  }
  return
}
