// RUN: tilelang-npu opt %s -p assign-cores,cross-sync | filecheck %s
// RUN: tilelang-npu opt %s -p 'assign-cores,cross-sync{synchronise=false}' | filecheck %s --check-prefix ALONE
// The Cube core reads the data that the first branch stores after a write that waits for the second branch's load, which
// overwrites the bytes that the store reads. One flag is enough if the store is waited for whether or not the second branch
// is taken; this order within a core is requested from the core. If it cannot be requested, the store has a separate flag.
// CHECK:      scf.if
// CHECK-NEXT:   hivm.hir.store
// CHECK-NEXT: tile.counted_on = ["0"]
// CHECK-NEXT: scf.if
// CHECK-NEXT:   hivm.hir.load
// CHECK-NEXT: tile.counts_on = {{\[\[}}"0", "AIV", "MTE3", "MTE2", 0]]
// CHECK-NEXT: hivm.hir.sync_block_set[<VECTOR>, <PIPE_MTE2>, <PIPE_S>] flag = [[READ:[0-9]+]]
// CHECK-NEXT: hivm.hir.sync_block_wait[<CUBE>, <PIPE_MTE2>, <PIPE_S>] flag = [[READ]]
// CHECK-NEXT: hivm.hir.fixpipe
// CHECK-NEXT: hivm.hir.nd2nz
// ALONE-NOT:  tile.count
// ALONE:      hivm.hir.sync_block_set[<VECTOR>, <PIPE_MTE3>, <PIPE_S>] flag = [[STORED:[0-9]+]]
// ALONE-NOT:  tile.count
// ALONE:      hivm.hir.fixpipe
// ALONE-NEXT: hivm.hir.sync_block_wait[<CUBE>, <PIPE_MTE3>, <PIPE_S>] flag = [[STORED]]
// ALONE-NEXT: hivm.hir.nd2nz
func.func @k(%ffts: i64 {hacc.arg_type = #hacc.arg_type<ffts_base_address>}, %lock: memref<?xi8, #hivm.address_space<gm>>, %ws: memref<?xi8, #hivm.address_space<gm>> {hacc.arg_type = #hacc.arg_type<workspace>}, %n: index, %m: index) attributes {hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>, hivm.func_core_type = #hivm.func_core_type<MIX>} {
  %c0 = arith.constant 0 : index
  %a = arith.cmpi sgt, %n, %c0 : index
  %b = arith.cmpi sgt, %m, %c0 : index
  %c = memref.alloc() : memref<1x1x16x16xf32, #hivm.address_space<cc>>
  %l = memref.alloc() : memref<2x1x16x8xf32, #hivm.address_space<cbuf>>
  %u = memref.alloc() : memref<16x16xf32, #hivm.address_space<ub>>
  %there = memref_ext.alloc_workspace() : memref<16x16xf32, #hivm.address_space<gm>>
  %back = memref_ext.alloc_workspace() : memref<16x16xf32, #hivm.address_space<gm>>
  scf.if %a {
    hivm.hir.store ins(%u : memref<16x16xf32, #hivm.address_space<ub>>) outs(%there : memref<16x16xf32, #hivm.address_space<gm>>)
  }
  scf.if %b {
    hivm.hir.load ins(%back : memref<16x16xf32, #hivm.address_space<gm>>) outs(%u : memref<16x16xf32, #hivm.address_space<ub>>)
  }
  hivm.hir.fixpipe {dma_mode = #hivm.dma_mode<nz2nd>} ins(%c : memref<1x1x16x16xf32, #hivm.address_space<cc>>) outs(%back : memref<16x16xf32, #hivm.address_space<gm>>)
  hivm.hir.nd2nz {dst_continuous} ins(%there : memref<16x16xf32, #hivm.address_space<gm>>) outs(%l : memref<2x1x16x8xf32, #hivm.address_space<cbuf>>)
  return
}
