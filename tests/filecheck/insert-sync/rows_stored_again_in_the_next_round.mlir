// RUN: tilelang-npu opt %s -p insert-sync | filecheck %s
// Each round stores the same rows, and an iteration has the event id of the earlier iteration that stored its rows: its wait
// for that one is enough. Nothing waits between the rounds.
// CHECK:      scf.for %t
// CHECK-NEXT:   scf.for %i
// CHECK:          hivm.hir.wait_flag[<PIPE_MTE3>, <PIPE_V>, %turn2]
// CHECK-NEXT:     hivm.hir.vbrc
// CHECK:          hivm.hir.store
// CHECK-NEXT:     hivm.hir.set_flag[<PIPE_MTE3>, <PIPE_V>, %turn2]
func.func @k(%O: memref<64x64xf32, #hivm.address_space<gm>>, %n: index) attributes {hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>, hivm.func_core_type = #hivm.func_core_type<AIV>} {
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
      %r = arith.muli %i, %c8 : index
      %o = memref.subview %O[%r, 0] [8, 64] [1, 1] : memref<64x64xf32, #hivm.address_space<gm>> to memref<8x64xf32, strided<[64, 1], offset: ?>, #hivm.address_space<gm>>
      hivm.hir.store ins(%a : memref<8x64xf32, #hivm.address_space<ub>>) outs(%o : memref<8x64xf32, strided<[64, 1], offset: ?>, #hivm.address_space<gm>>)
    }
  }
  return
}
