// RUN: tilelang-npu opt %s -p insert-sync | filecheck %s
// The loop has seven iterations, and the branch is taken in the third at the latest: its event orders a store after the loop
// of data that was computed before the loop. If the loop may end earlier, the store has a separate event.
// CHECK-LABEL: func.func @surely
// CHECK:        hivm.hir.vbrc
// CHECK-NOT:    set_flag[<PIPE_V>, <PIPE_MTE3>
// CHECK:        scf.for
// CHECK:          scf.if
// CHECK:            hivm.hir.set_flag[<PIPE_V>, <PIPE_MTE3>, <EVENT_ID0>]
// CHECK-NEXT:       hivm.hir.wait_flag[<PIPE_V>, <PIPE_MTE3>, <EVENT_ID0>]
// CHECK-NEXT:       hivm.hir.store
// CHECK-NOT:    wait_flag[<PIPE_V>, <PIPE_MTE3>
// CHECK-LABEL: func.func @perhaps
// CHECK:        hivm.hir.vbrc
// CHECK-NEXT:   hivm.hir.set_flag[<PIPE_V>, <PIPE_MTE3>, <EVENT_ID0>]
// CHECK:        scf.for
// CHECK:        hivm.hir.wait_flag[<PIPE_V>, <PIPE_MTE3>, <EVENT_ID0>]
// If the first iteration is unknown, the loop may start after all iterations that take the branch.
// CHECK-LABEL: func.func @begins_late
// CHECK:        hivm.hir.vbrc
// CHECK-NEXT:   hivm.hir.set_flag[<PIPE_V>, <PIPE_MTE3>, <EVENT_ID0>]
// CHECK:        scf.for
// CHECK:        hivm.hir.wait_flag[<PIPE_V>, <PIPE_MTE3>, <EVENT_ID0>]
func.func @surely(%X: memref<64xf32, #hivm.address_space<gm>>, %Y: memref<64xf32, #hivm.address_space<gm>>) attributes {hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>, hivm.func_core_type = #hivm.func_core_type<AIV>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c7 = arith.constant 7 : index
  %half = arith.constant 5.0e-1 : f32
  %p0 = arith.constant 0 : i64
  %p1 = arith.constant 256 : i64
  %a = hivm.hir.pointer_cast(%p0) : memref<64xf32, #hivm.address_space<ub>>
  %b = hivm.hir.pointer_cast(%p1) : memref<64xf32, #hivm.address_space<ub>>
  hivm.hir.vbrc ins(%half : f32) outs(%a : memref<64xf32, #hivm.address_space<ub>>)
  scf.for %i = %c0 to %c7 step %c1 {
    %stage = arith.cmpi sge, %i, %c2 : index
    scf.if %stage {
      hivm.hir.vadd ins(%a, %a : memref<64xf32, #hivm.address_space<ub>>, memref<64xf32, #hivm.address_space<ub>>) outs(%b : memref<64xf32, #hivm.address_space<ub>>)
      hivm.hir.store ins(%b : memref<64xf32, #hivm.address_space<ub>>) outs(%Y : memref<64xf32, #hivm.address_space<gm>>)
    }
  }
  hivm.hir.store ins(%a : memref<64xf32, #hivm.address_space<ub>>) outs(%X : memref<64xf32, #hivm.address_space<gm>>)
  return
}
func.func @perhaps(%X: memref<64xf32, #hivm.address_space<gm>>, %Y: memref<64xf32, #hivm.address_space<gm>>, %n: index) attributes {hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>, hivm.func_core_type = #hivm.func_core_type<AIV>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %half = arith.constant 5.0e-1 : f32
  %p0 = arith.constant 0 : i64
  %p1 = arith.constant 256 : i64
  %a = hivm.hir.pointer_cast(%p0) : memref<64xf32, #hivm.address_space<ub>>
  %b = hivm.hir.pointer_cast(%p1) : memref<64xf32, #hivm.address_space<ub>>
  hivm.hir.vbrc ins(%half : f32) outs(%a : memref<64xf32, #hivm.address_space<ub>>)
  scf.for %i = %c0 to %n step %c1 {
    %stage = arith.cmpi sge, %i, %c2 : index
    scf.if %stage {
      hivm.hir.vadd ins(%a, %a : memref<64xf32, #hivm.address_space<ub>>, memref<64xf32, #hivm.address_space<ub>>) outs(%b : memref<64xf32, #hivm.address_space<ub>>)
      hivm.hir.store ins(%b : memref<64xf32, #hivm.address_space<ub>>) outs(%Y : memref<64xf32, #hivm.address_space<gm>>)
    }
  }
  hivm.hir.store ins(%a : memref<64xf32, #hivm.address_space<ub>>) outs(%X : memref<64xf32, #hivm.address_space<gm>>)
  return
}
func.func @begins_late(%X: memref<64xf32, #hivm.address_space<gm>>, %Y: memref<64xf32, #hivm.address_space<gm>>, %n: index) attributes {hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>, hivm.func_core_type = #hivm.func_core_type<AIV>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %half = arith.constant 5.0e-1 : f32
  %p0 = arith.constant 0 : i64
  %p1 = arith.constant 256 : i64
  %a = hivm.hir.pointer_cast(%p0) : memref<64xf32, #hivm.address_space<ub>>
  %b = hivm.hir.pointer_cast(%p1) : memref<64xf32, #hivm.address_space<ub>>
  hivm.hir.vbrc ins(%half : f32) outs(%a : memref<64xf32, #hivm.address_space<ub>>)
  %c4 = arith.constant 4 : index
  %c20 = arith.constant 20 : index
  %low = arith.remui %n, %c4 : index
  scf.for %i = %low to %c20 step %c1 {
    %stage = arith.cmpi slt, %i, %c2 : index
    scf.if %stage {
      hivm.hir.vadd ins(%a, %a : memref<64xf32, #hivm.address_space<ub>>, memref<64xf32, #hivm.address_space<ub>>) outs(%b : memref<64xf32, #hivm.address_space<ub>>)
      hivm.hir.store ins(%b : memref<64xf32, #hivm.address_space<ub>>) outs(%Y : memref<64xf32, #hivm.address_space<gm>>)
    }
  }
  hivm.hir.store ins(%a : memref<64xf32, #hivm.address_space<ub>>) outs(%X : memref<64xf32, #hivm.address_space<gm>>)
  return
}
