// RUN: tilelang-npu opt %s -p assign-cores,add-toolchain-arguments | filecheck %s
// Attributes of the function that index the toolchain's arguments become roles of these arguments; a kernel of one core
// needs no more.
// CHECK: func.func @k(%lock: memref<?xi8, #hivm.address_space<gm>> {hacc.arg_type = #hacc.arg_type<sync_block_lock>}, %ws: memref<?xi8, #hivm.address_space<gm>> {hacc.arg_type = #hacc.arg_type<workspace>}, %g: memref<16xf32, #hivm.address_space<gm>>)
// CHECK-SAME: hivm.func_core_type = #hivm.func_core_type<AIV>
func.func @k(%lock: memref<?xi8, #hivm.address_space<gm>>, %ws: memref<?xi8, #hivm.address_space<gm>>, %g: memref<16xf32, #hivm.address_space<gm>>)
    attributes {SyncBlockLockArgIdx = 0 : i64, WorkspaceArgIdx = 1 : i64, hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>} {
  %u = memref.alloc() : memref<16xf32, #hivm.address_space<ub>>
  hivm.hir.load ins(%g : memref<16xf32, #hivm.address_space<gm>>) outs(%u : memref<16xf32, #hivm.address_space<ub>>)
  return
}
