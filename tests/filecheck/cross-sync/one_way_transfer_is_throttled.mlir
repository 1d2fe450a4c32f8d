// RUN: tilelang-npu opt %s -p assign-cores,cross-sync | filecheck %s
// Each iteration transfers different rows, so no slot has to be freed. But the Cube core, which waits for nothing, could set
// a flag more often than a counter holds, so the Vector core sets a flag in the other direction, and the Cube core may be
// four iterations ahead.
// CHECK-COUNT-4: hivm.hir.sync_block_set[<VECTOR>, <PIPE_MTE2>, <PIPE_S>] flag = [[BACK:[0-9]+]]
// CHECK-NEXT:    scf.for
// CHECK:           hivm.hir.sync_block_wait[<CUBE>, <PIPE_MTE2>, <PIPE_S>] flag = [[BACK]]
// CHECK:           hivm.hir.fixpipe
// CHECK:           hivm.hir.load
// CHECK-NEXT:      hivm.hir.sync_block_set[<VECTOR>, <PIPE_MTE2>, <PIPE_S>] flag = [[BACK]]
// CHECK:         }
// CHECK-COUNT-4: hivm.hir.sync_block_wait[<CUBE>, <PIPE_MTE2>, <PIPE_S>] flag = [[BACK]]
func.func @k(%ffts: i64 {hacc.arg_type = #hacc.arg_type<ffts_base_address>}, %lock: memref<?xi8, #hivm.address_space<gm>>, %ws: memref<?xi8, #hivm.address_space<gm>> {hacc.arg_type = #hacc.arg_type<workspace>}, %n: index, %p: memref<4096x16xf32, #hivm.address_space<gm>>) attributes {hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>, hivm.func_core_type = #hivm.func_core_type<MIX>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %c = memref.alloc() : memref<1x1x16x16xf32, #hivm.address_space<cc>>
  %u = memref.alloc() : memref<16x16xf32, #hivm.address_space<ub>>
  scf.for %i = %c0 to %n step %c1 {
    %row = arith.muli %i, %c16 : index
    %w = memref.subview %p[%row, 0] [16, 16] [1, 1] : memref<4096x16xf32, #hivm.address_space<gm>> to memref<16x16xf32, strided<[16, 1], offset: ?>, #hivm.address_space<gm>>
    hivm.hir.fixpipe {dma_mode = #hivm.dma_mode<nz2nd>} ins(%c : memref<1x1x16x16xf32, #hivm.address_space<cc>>) outs(%w : memref<16x16xf32, strided<[16, 1], offset: ?>, #hivm.address_space<gm>>)
    hivm.hir.load ins(%w : memref<16x16xf32, strided<[16, 1], offset: ?>, #hivm.address_space<gm>>) outs(%u : memref<16x16xf32, #hivm.address_space<ub>>)
  }
  return
}
