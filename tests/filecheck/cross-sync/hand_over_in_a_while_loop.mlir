// RUN: tilelang-npu opt %s -p assign-cores,cross-sync | filecheck %s
// A hand-over from the Cube core to the Vector core in a `while`: a ready flag after the producer, a free flag after the
// consumer; one free flag is set before the loop and waited for after it.
// CHECK:         hivm.hir.sync_block_set[<VECTOR>, <PIPE_MTE2>, <PIPE_S>] flag = [[FREE:[0-9]+]]
// CHECK-NEXT:    scf.while
// CHECK:         do {
// CHECK-NEXT:      hivm.hir.sync_block_wait[<CUBE>, <PIPE_MTE2>, <PIPE_S>] flag = [[FREE]]
// CHECK-NEXT:      hivm.hir.fixpipe
// CHECK-NEXT:      hivm.hir.sync_block_set[<CUBE>, <PIPE_FIX>, <PIPE_S>] flag = [[READY:[0-9]+]]
// CHECK-NEXT:      hivm.hir.sync_block_wait[<VECTOR>, <PIPE_FIX>, <PIPE_S>] flag = [[READY]]
// CHECK-NEXT:      hivm.hir.load
// CHECK-NEXT:      hivm.hir.sync_block_set[<VECTOR>, <PIPE_MTE2>, <PIPE_S>] flag = [[FREE]]
// CHECK:         hivm.hir.sync_block_wait[<CUBE>, <PIPE_MTE2>, <PIPE_S>] flag = [[FREE]]
func.func @k(%ffts: i64 {hacc.arg_type = #hacc.arg_type<ffts_base_address>}, %lock: memref<?xi8, #hivm.address_space<gm>>, %ws: memref<?xi8, #hivm.address_space<gm>> {hacc.arg_type = #hacc.arg_type<workspace>}) attributes {hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>, hivm.func_core_type = #hivm.func_core_type<MIX>} {
  %c0 = arith.constant 0 : index
  %go = memref.alloca() : memref<1xi1>
  %c = memref.alloc() : memref<1x1x16x16xf32, #hivm.address_space<cc>>
  %u = memref.alloc() : memref<16x16xf32, #hivm.address_space<ub>>
  %w = memref_ext.alloc_workspace() : memref<16x16xf32, #hivm.address_space<gm>>
  scf.while () : () -> () {
    %more = memref.load %go[%c0] : memref<1xi1>
    scf.condition(%more)
  } do {
    hivm.hir.fixpipe {dma_mode = #hivm.dma_mode<nz2nd>} ins(%c : memref<1x1x16x16xf32, #hivm.address_space<cc>>) outs(%w : memref<16x16xf32, #hivm.address_space<gm>>)
    hivm.hir.load ins(%w : memref<16x16xf32, #hivm.address_space<gm>>) outs(%u : memref<16x16xf32, #hivm.address_space<ub>>)
    scf.yield
  }
  return
}
