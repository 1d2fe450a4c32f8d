// RUN: tilelang-npu opt %s -p insert-sync | filecheck %s
// A round of the outer loop stores the rows of another iteration of the previous round, which has another event id: all
// stores are waited for at the end of a round. The same holds if the rows move with the round, and if a round starts later
// and counts its iterations from there.
// CHECK-LABEL: func.func @moved
// CHECK:      scf.for %t
// CHECK-NEXT:   hivm.hir.set_flag[<PIPE_MTE3>, <PIPE_V>, <EVENT_ID0>]
// CHECK-NEXT:   hivm.hir.set_flag[<PIPE_MTE3>, <PIPE_V>, <EVENT_ID1>]
// CHECK-NEXT:   scf.for %i
// CHECK:        }
// CHECK-NEXT:   hivm.hir.wait_flag[<PIPE_MTE3>, <PIPE_V>, <EVENT_ID0>]
// CHECK-NEXT:   hivm.hir.wait_flag[<PIPE_MTE3>, <PIPE_V>, <EVENT_ID1>]
// CHECK-NEXT: }
// CHECK-LABEL: func.func @later
// CHECK:      scf.for %t
// CHECK-NEXT:   hivm.hir.set_flag[<PIPE_MTE3>, <PIPE_V>, <EVENT_ID0>]
// CHECK-NEXT:   hivm.hir.set_flag[<PIPE_MTE3>, <PIPE_V>, <EVENT_ID1>]
// CHECK-NEXT:   scf.for %i
// CHECK:        }
// CHECK-NEXT:   hivm.hir.wait_flag[<PIPE_MTE3>, <PIPE_V>, <EVENT_ID0>]
// CHECK-NEXT:   hivm.hir.wait_flag[<PIPE_MTE3>, <PIPE_V>, <EVENT_ID1>]
// CHECK-NEXT: }
func.func @moved(%O: memref<64x64xf32, #hivm.address_space<gm>>, %n: index) attributes {hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>, hivm.func_core_type = #hivm.func_core_type<AIV>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %p0 = arith.constant 0 : i64
  %p1 = arith.constant 2048 : i64
  %x = arith.constant 1.0 : f32
  scf.for %t = %c0 to %n step %c1 {
    scf.for %i = %c0 to %c4 step %c1 {
      %a = hivm.hir.pointer_cast(%p0, %p1) : memref<8x64xf32, #hivm.address_space<ub>>
      hivm.hir.vbrc ins(%x : f32) outs(%a : memref<8x64xf32, #hivm.address_space<ub>>)
      %s = arith.addi %i, %t : index
      %r = arith.muli %s, %c8 : index
      %o = memref.subview %O[%r, 0] [8, 64] [1, 1] : memref<64x64xf32, #hivm.address_space<gm>> to memref<8x64xf32, strided<[64, 1], offset: ?>, #hivm.address_space<gm>>
      hivm.hir.store ins(%a : memref<8x64xf32, #hivm.address_space<ub>>) outs(%o : memref<8x64xf32, strided<[64, 1], offset: ?>, #hivm.address_space<gm>>)
    }
  }
  return
}
func.func @later(%O: memref<64x64xf32, #hivm.address_space<gm>>, %n: index) attributes {hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>, hivm.func_core_type = #hivm.func_core_type<AIV>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %p0 = arith.constant 0 : i64
  %p1 = arith.constant 2048 : i64
  %x = arith.constant 1.0 : f32
  scf.for %t = %c0 to %n step %c1 {
    scf.for %i = %t to %c4 step %c1 {
      %a = hivm.hir.pointer_cast(%p0, %p1) : memref<8x64xf32, #hivm.address_space<ub>>
      hivm.hir.vbrc ins(%x : f32) outs(%a : memref<8x64xf32, #hivm.address_space<ub>>)
      %r = arith.muli %i, %c8 : index
      %o = memref.subview %O[%r, 0] [8, 64] [1, 1] : memref<64x64xf32, #hivm.address_space<gm>> to memref<8x64xf32, strided<[64, 1], offset: ?>, #hivm.address_space<gm>>
      hivm.hir.store ins(%a : memref<8x64xf32, #hivm.address_space<ub>>) outs(%o : memref<8x64xf32, strided<[64, 1], offset: ?>, #hivm.address_space<gm>>)
    }
  }
  return
}
