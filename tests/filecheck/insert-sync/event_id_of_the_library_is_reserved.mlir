// RUN: tilelang-npu opt %s -p insert-sync | filecheck %s
// A ring has eight slots, and the toolchain's library reserves one of the eight event ids: the slots share one event.
// CHECK-COUNT-1: hivm.hir.set_flag[<PIPE_V>, <PIPE_MTE2>, <EVENT_ID0>]
// CHECK-NOT:     EVENT_ID7
func.func @k(%X: memref<16xf32, #hivm.address_space<gm>>) attributes {hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>, hivm.func_core_type = #hivm.func_core_type<AIV>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %i0 = arith.constant 0 : i64
  %i64 = arith.constant 64 : i64
  %i128 = arith.constant 128 : i64
  %i192 = arith.constant 192 : i64
  %i256 = arith.constant 256 : i64
  %i320 = arith.constant 320 : i64
  %i384 = arith.constant 384 : i64
  %i448 = arith.constant 448 : i64
  %i512 = arith.constant 512 : i64
  %y = hivm.hir.pointer_cast(%i512) : memref<16xf32, #hivm.address_space<ub>>
  scf.for %k = %c0 to %c16 step %c1 {
    %x = hivm.hir.pointer_cast(%i0, %i64, %i128, %i192, %i256, %i320, %i384, %i448) : memref<16xf32, #hivm.address_space<ub>>
    hivm.hir.load ins(%X : memref<16xf32, #hivm.address_space<gm>>) outs(%x : memref<16xf32, #hivm.address_space<ub>>)
    hivm.hir.vadd ins(%x, %x : memref<16xf32, #hivm.address_space<ub>>, memref<16xf32, #hivm.address_space<ub>>) outs(%y : memref<16xf32, #hivm.address_space<ub>>)
  }
  return
}
