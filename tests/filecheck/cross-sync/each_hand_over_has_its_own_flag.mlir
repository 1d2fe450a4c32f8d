// RUN: tilelang-npu opt %s -p assign-cores,cross-sync | filecheck %s
// As long as flags are free, each hand-over gets a separate one, even if the second starts after the first has ended.
// CHECK:      sync_block_set[<CUBE>, <PIPE_FIX>, <PIPE_S>] flag = 0
// CHECK:      sync_block_wait[<VECTOR>, <PIPE_FIX>, <PIPE_S>] flag = 0
// CHECK:      sync_block_set[<CUBE>, <PIPE_FIX>, <PIPE_S>] flag = 1
// CHECK:      sync_block_wait[<VECTOR>, <PIPE_FIX>, <PIPE_S>] flag = 1
func.func @k(%ffts: i64 {hacc.arg_type = #hacc.arg_type<ffts_base_address>}, %lock: memref<?xi8, #hivm.address_space<gm>>, %ws: memref<?xi8, #hivm.address_space<gm>> {hacc.arg_type = #hacc.arg_type<workspace>}) attributes {hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>, hivm.func_core_type = #hivm.func_core_type<MIX>} {
  %c = memref.alloc() : memref<1x1x16x16xf32, #hivm.address_space<cc>>
  %u = memref.alloc() : memref<16x16xf32, #hivm.address_space<ub>>
  %v = memref.alloc() : memref<16x16xf32, #hivm.address_space<ub>>
  %w0 = memref_ext.alloc_workspace() : memref<16x16xf32, #hivm.address_space<gm>>
  hivm.hir.fixpipe {dma_mode = #hivm.dma_mode<nz2nd>} ins(%c : memref<1x1x16x16xf32, #hivm.address_space<cc>>) outs(%w0 : memref<16x16xf32, #hivm.address_space<gm>>)
  hivm.hir.load ins(%w0 : memref<16x16xf32, #hivm.address_space<gm>>) outs(%u : memref<16x16xf32, #hivm.address_space<ub>>)
  %w1 = memref_ext.alloc_workspace() : memref<16x16xf32, #hivm.address_space<gm>>
  hivm.hir.fixpipe {dma_mode = #hivm.dma_mode<nz2nd>} ins(%c : memref<1x1x16x16xf32, #hivm.address_space<cc>>) outs(%w1 : memref<16x16xf32, #hivm.address_space<gm>>)
  hivm.hir.load ins(%w1 : memref<16x16xf32, #hivm.address_space<gm>>) outs(%v : memref<16x16xf32, #hivm.address_space<ub>>)
  return
}
