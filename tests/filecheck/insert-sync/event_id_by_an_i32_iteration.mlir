// RUN: tilelang-npu opt %s -p insert-sync | filecheck %s
// The event id alternates with the iterations of a loop over i32, as with an index.
// CHECK:      scf.for %i = %{{.*}} to %n step %{{.*}} : i32 {
// CHECK-NEXT:   %0 = arith.index_cast %i : i32 to index
// CHECK-NEXT:   %1 = arith.remui %0, %c2 : index
// CHECK-NEXT:   %turn2 = arith.index_cast %1 : index to i64
// CHECK:        hivm.hir.wait_flag[<PIPE_V>, <PIPE_MTE2>, %turn2]
func.func @k(%X: memref<64xf32, #hivm.address_space<gm>>, %n: i32) attributes {hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>, hivm.func_core_type = #hivm.func_core_type<AIV>} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %p0 = arith.constant 0 : i64
  %p1 = arith.constant 256 : i64
  %p4 = arith.constant 1024 : i64
  %b = hivm.hir.pointer_cast(%p4) : memref<64xf32, #hivm.address_space<ub>>
  scf.for %i = %c0 to %n step %c1 : i32 {
    %a = hivm.hir.pointer_cast(%p0, %p1) : memref<64xf32, #hivm.address_space<ub>>
    hivm.hir.load ins(%X : memref<64xf32, #hivm.address_space<gm>>) outs(%a : memref<64xf32, #hivm.address_space<ub>>)
    hivm.hir.vrelu ins(%a : memref<64xf32, #hivm.address_space<ub>>) outs(%b : memref<64xf32, #hivm.address_space<ub>>)
  }
  return
}
