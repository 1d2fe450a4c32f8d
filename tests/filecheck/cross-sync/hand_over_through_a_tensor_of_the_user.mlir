// RUN: tilelang-npu opt %s -p assign-cores,cross-sync | filecheck %s
// RUN: tilelang-npu opt %s -p assign-cores,cross-sync{cross_synchronise=false} | filecheck %s --check-prefix OFF
// Hand-overs are matched by data flow: a tensor that Vector code writes and Cube code reads is a hand-over, whatever its
// name, unless the user sets the flags.
// CHECK:      hivm.hir.store
// CHECK-NEXT: hivm.hir.sync_block_set[<VECTOR>, <PIPE_MTE3>, <PIPE_S>] flag = 0
// CHECK-NEXT: hivm.hir.sync_block_wait[<CUBE>, <PIPE_MTE3>, <PIPE_S>] flag = 0
// CHECK-NEXT: hivm.hir.nd2nz
// OFF-NOT:    sync_block
func.func @k(%ffts: i64 {hacc.arg_type = #hacc.arg_type<ffts_base_address>}, %lock: memref<?xi8, #hivm.address_space<gm>>, %ws: memref<?xi8, #hivm.address_space<gm>> {hacc.arg_type = #hacc.arg_type<workspace>}, %scratch: memref<16x16xf16, #hivm.address_space<gm>>) attributes {hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>, hivm.func_core_type = #hivm.func_core_type<MIX>} {
  %u = memref.alloc() : memref<16x16xf16, #hivm.address_space<ub>>
  %a = memref.alloc() : memref<1x1x16x16xf16, #hivm.address_space<cbuf>>
  hivm.hir.store ins(%u : memref<16x16xf16, #hivm.address_space<ub>>) outs(%scratch : memref<16x16xf16, #hivm.address_space<gm>>)
  hivm.hir.nd2nz {dst_continuous} ins(%scratch : memref<16x16xf16, #hivm.address_space<gm>>) outs(%a : memref<1x1x16x16xf16, #hivm.address_space<cbuf>>)
  return
}
