// RUN: tilelang-npu opt %s -p split-cores | filecheck %s
// One hand-over from Cube to Vector in a loop: a ring of two slots, ready and free flags on both sides, two free tokens first and
// taken back last.
// CHECK-LABEL: func.func @k_mix_aic
// CHECK:         scf.for
// CHECK:           hivm.hir.sync_block_wait[<CUBE>, <PIPE_MTE2>, <PIPE_S>] flag = 1
// CHECK-NEXT:      hivm.hir.fixpipe
// CHECK-NEXT:      hivm.hir.sync_block_set[<CUBE>, <PIPE_FIX>, <PIPE_S>] flag = 0
// CHECK-NOT:       hivm.hir.load
// CHECK:         }
// CHECK-COUNT-2: hivm.hir.sync_block_wait[<CUBE>, <PIPE_MTE2>, <PIPE_S>] flag = 1
// CHECK-LABEL: func.func @k_mix_aiv
// CHECK-COUNT-2: hivm.hir.sync_block_set[<VECTOR>, <PIPE_MTE2>, <PIPE_S>] flag = 1
// CHECK:         scf.for
// CHECK:           hivm.hir.sync_block_wait[<VECTOR>, <PIPE_FIX>, <PIPE_S>] flag = 0
// CHECK-NEXT:      hivm.hir.load
// CHECK-NEXT:      hivm.hir.sync_block_set[<VECTOR>, <PIPE_MTE2>, <PIPE_S>] flag = 1
func.func @k(%ffts: i64, %lock: memref<?xi8, #hivm.address_space<gm>>, %ws: memref<?xi8, #hivm.address_space<gm>>) attributes {hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>, hivm.func_core_type = #hivm.func_core_type<MIX>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c = memref.alloc() : memref<1x1x16x16xf32, #hivm.address_space<cc>>
  %u = memref.alloc() : memref<16x16xf32, #hivm.address_space<ub>>
  scf.for %i = %c0 to %c4 step %c1 {
    %w = memref_ext.alloc_workspace() : memref<16x16xf32, #hivm.address_space<gm>>
    hivm.hir.fixpipe {dma_mode = #hivm.dma_mode<nz2nd>} ins(%c : memref<1x1x16x16xf32, #hivm.address_space<cc>>) outs(%w : memref<16x16xf32, #hivm.address_space<gm>>)
    hivm.hir.load ins(%w : memref<16x16xf32, #hivm.address_space<gm>>) outs(%u : memref<16x16xf32, #hivm.address_space<ub>>)
  }
  return
}
