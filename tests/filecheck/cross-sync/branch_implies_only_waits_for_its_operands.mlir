// RUN: tilelang-npu opt %s -p assign-cores,cross-sync | filecheck %s
// The branch waits for the first load, and nothing in it waits for the second: the second load has a flag, which covers
// both.
// CHECK:      hivm.hir.load
// CHECK-NEXT: hivm.hir.load
// CHECK-NEXT: hivm.hir.sync_block_set[<VECTOR>, <PIPE_MTE2>, <PIPE_S>] flag = [[READ:[0-9]+]]
// CHECK-NEXT: hivm.hir.sync_block_wait[<CUBE>, <PIPE_MTE2>, <PIPE_S>] flag = [[READ]]
// CHECK-NEXT: scf.if
// CHECK:        hivm.hir.fixpipe
// CHECK-NEXT:   hivm.hir.fixpipe
func.func @k(%ffts: i64 {hacc.arg_type = #hacc.arg_type<ffts_base_address>}, %lock: memref<?xi8, #hivm.address_space<gm>>, %ws: memref<?xi8, #hivm.address_space<gm>> {hacc.arg_type = #hacc.arg_type<workspace>}, %n: index) attributes {hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>, hivm.func_core_type = #hivm.func_core_type<MIX>} {
  %c0 = arith.constant 0 : index
  %b = arith.cmpi sgt, %n, %c0 : index
  %c = memref.alloc() : memref<1x1x16x16xf32, #hivm.address_space<cc>>
  %l = memref.alloc() : memref<2x1x16x8xf32, #hivm.address_space<cbuf>>
  %u = memref.alloc() : memref<16x16xf32, #hivm.address_space<ub>>
  %v = memref.alloc() : memref<16x16xf32, #hivm.address_space<ub>>
  %w = memref.alloc() : memref<16x16xf32, #hivm.address_space<ub>>
  %there = memref_ext.alloc_workspace() : memref<16x16xf32, #hivm.address_space<gm>>
  %back = memref_ext.alloc_workspace() : memref<16x16xf32, #hivm.address_space<gm>>
  %other = memref_ext.alloc_workspace() : memref<16x16xf32, #hivm.address_space<gm>>
  hivm.hir.load ins(%back : memref<16x16xf32, #hivm.address_space<gm>>) outs(%u : memref<16x16xf32, #hivm.address_space<ub>>)
  hivm.hir.load ins(%other : memref<16x16xf32, #hivm.address_space<gm>>) outs(%w : memref<16x16xf32, #hivm.address_space<ub>>)
  scf.if %b {
    hivm.hir.vabs ins(%u : memref<16x16xf32, #hivm.address_space<ub>>) outs(%v : memref<16x16xf32, #hivm.address_space<ub>>)
    hivm.hir.store ins(%v : memref<16x16xf32, #hivm.address_space<ub>>) outs(%there : memref<16x16xf32, #hivm.address_space<gm>>)
    hivm.hir.nd2nz {dst_continuous} ins(%there : memref<16x16xf32, #hivm.address_space<gm>>) outs(%l : memref<2x1x16x8xf32, #hivm.address_space<cbuf>>)
    hivm.hir.fixpipe {dma_mode = #hivm.dma_mode<nz2nd>} ins(%c : memref<1x1x16x16xf32, #hivm.address_space<cc>>) outs(%back : memref<16x16xf32, #hivm.address_space<gm>>)
    hivm.hir.fixpipe {dma_mode = #hivm.dma_mode<nz2nd>} ins(%c : memref<1x1x16x16xf32, #hivm.address_space<cc>>) outs(%other : memref<16x16xf32, #hivm.address_space<gm>>)
  }
  return
}
