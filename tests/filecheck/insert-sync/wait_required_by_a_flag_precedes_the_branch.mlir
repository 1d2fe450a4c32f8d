// RUN: tilelang-npu opt %s -p insert-sync | filecheck %s
// A flag between the cores relies on the wait of the load pipe for the store, whether or not the second branch is taken: the
// wait precedes the branch, and the request for it is removed.
// CHECK-NOT:  tile.count
// CHECK:      set_flag[<PIPE_MTE3>, <PIPE_MTE2>, <EVENT_ID[[ID:[0-7]]]>]
// CHECK-NEXT: wait_flag[<PIPE_MTE3>, <PIPE_MTE2>, <EVENT_ID[[ID]]>]
// CHECK-NEXT: scf.if
// CHECK-NEXT:   hivm.hir.load
// CHECK-NOT:  tile.count
func.func @k(%q: memref<16x16xf32, #hivm.address_space<gm>>, %p: memref<16x16xf32, #hivm.address_space<gm>>, %n: index, %m: index) attributes {hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>, hivm.func_core_type = #hivm.func_core_type<AIV>} {
  %c0 = arith.constant 0 : index
  %c0_i64 = arith.constant 0 : i64
  %a = arith.cmpi sgt, %n, %c0 : index
  %b = arith.cmpi sgt, %m, %c0 : index
  %u = hivm.hir.pointer_cast(%c0_i64) : memref<16x16xf32, #hivm.address_space<ub>>
  scf.if %a {
    hivm.hir.store ins(%u : memref<16x16xf32, #hivm.address_space<ub>>) outs(%p : memref<16x16xf32, #hivm.address_space<gm>>)
  } {tile.counted_on = ["0"]}
  scf.if %b {
    hivm.hir.load ins(%q : memref<16x16xf32, #hivm.address_space<gm>>) outs(%u : memref<16x16xf32, #hivm.address_space<ub>>)
  } {tile.counts_on = [["0", "AIV", "MTE3", "MTE2", 0]]}
  return
}
