// RUN: tilelang-npu opt %s -p assign-cores,cross-sync | filecheck %s
// A hand-over from the Cube core to the Vector core in a loop with two slots: a ready flag after the producer, a free flag
// after the consumer; two free flags are set before the loop and waited for after it. The order of the loads within a core
// needs no flag.
// CHECK-COUNT-2: hivm.hir.sync_block_set[<VECTOR>, <PIPE_MTE2>, <PIPE_S>] flag = [[FREE:[0-9]+]]
// CHECK-NEXT:    scf.for
// CHECK:           hivm.hir.sync_block_wait[<CUBE>, <PIPE_MTE2>, <PIPE_S>] flag = [[FREE]]
// CHECK-NEXT:      hivm.hir.fixpipe
// CHECK-NEXT:      hivm.hir.sync_block_set[<CUBE>, <PIPE_FIX>, <PIPE_S>] flag = [[READY:[0-9]+]]
// CHECK-NEXT:      hivm.hir.sync_block_wait[<VECTOR>, <PIPE_FIX>, <PIPE_S>] flag = [[READY]]
// CHECK-NEXT:      hivm.hir.load
// CHECK-NEXT:      hivm.hir.sync_block_set[<VECTOR>, <PIPE_MTE2>, <PIPE_S>] flag = [[FREE]]
// CHECK-NEXT:    }
// CHECK-COUNT-2: hivm.hir.sync_block_wait[<CUBE>, <PIPE_MTE2>, <PIPE_S>] flag = [[FREE]]
func.func @k(%ffts: i64 {hacc.arg_type = #hacc.arg_type<ffts_base_address>}, %lock: memref<?xi8, #hivm.address_space<gm>>, %ws: memref<?xi8, #hivm.address_space<gm>> {hacc.arg_type = #hacc.arg_type<workspace>}) attributes {hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>, hivm.func_core_type = #hivm.func_core_type<MIX>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c = memref.alloc() : memref<1x1x16x16xf32, #hivm.address_space<cc>>
  %u = memref.alloc() : memref<16x16xf32, #hivm.address_space<ub>>
  scf.for %i = %c0 to %c4 step %c1 {
    %w = memref_ext.alloc_workspace() : memref<16x16xf32, #hivm.address_space<gm>>
    annotation.mark %w {hivm.multi_buffer = 2 : i32} : memref<16x16xf32, #hivm.address_space<gm>>
    hivm.hir.fixpipe {dma_mode = #hivm.dma_mode<nz2nd>} ins(%c : memref<1x1x16x16xf32, #hivm.address_space<cc>>) outs(%w : memref<16x16xf32, #hivm.address_space<gm>>)
    hivm.hir.load ins(%w : memref<16x16xf32, #hivm.address_space<gm>>) outs(%u : memref<16x16xf32, #hivm.address_space<ub>>)
  }
  return
}
