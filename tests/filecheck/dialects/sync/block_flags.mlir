// RUN: tilelang-npu opt %s | filecheck %s
// CHECK-LABEL: func.func @flags(%ffts: i64, %flag: i64, %locks: memref<?xi8>)
// CHECK-NEXT:    hivm.hir.sync_block_set[<CUBE>, <PIPE_FIX>, <PIPE_S>] flag = 3 ffts_base_addr = %ffts
// CHECK-NEXT:    hivm.hir.sync_block_wait[<VECTOR>, <PIPE_FIX>, <PIPE_S>] flag = %flag
// CHECK-NEXT:    hivm.hir.sync_block_set[<VECTOR>, <PIPE_MTE3>, <PIPE_S>] flag = %flag ffts_base_addr = %ffts sync_instr_mode = <INTER_SUBBLOCK_SYNCHRONIZATION>
// CHECK-NEXT:    hivm.hir.sync_block_set[<VECTOR>, <PIPE_MTE3>, <PIPE_S>] flag = 5 sync_instr_mode = <INTER_BLOCK_SYNCHRONIZATION>
// CHECK-NEXT:    hivm.hir.sync_block[<BARRIER_VECTOR>, 4 : i16]
// CHECK-NEXT:    hivm.hir.sync_block[<ALL>, 0 : i16] ffts_base_addr = %ffts tcube_pipe = <PIPE_FIX> tvector_pipe = <PIPE_MTE3>
// CHECK-NEXT:    %[[LOCK:.*]] = hivm.hir.create_sync_block_lock from %locks : from memref<?xi8> to memref<1xi64>
// CHECK-NEXT:    hivm.hir.sync_block_lock lock_var(%[[LOCK]] : memref<1xi64>)
// CHECK-NEXT:    hivm.hir.sync_block_unlock lock_var(%[[LOCK]] : memref<1xi64>)
func.func @flags(%ffts: i64, %flag: i64, %locks: memref<?xi8>) {
  hivm.hir.sync_block_set[<CUBE>, <PIPE_FIX>, <PIPE_S>] flag = 3 ffts_base_addr = %ffts
  hivm.hir.sync_block_wait[<VECTOR>, <PIPE_FIX>, <PIPE_S>] flag = %flag
  hivm.hir.sync_block_set[<VECTOR>, <PIPE_MTE3>, <PIPE_S>] flag = %flag ffts_base_addr = %ffts sync_instr_mode = <INTER_SUBBLOCK_SYNCHRONIZATION>
  hivm.hir.sync_block_set[<VECTOR>, <PIPE_MTE3>, <PIPE_S>] flag = 5 syn_instr_mode = <INTER_BLOCK_SYNCHRONIZATION>
  hivm.hir.sync_block[<BARRIER_VECTOR>, 4 : i16]
  hivm.hir.sync_block[<ALL>, 0 : i16] ffts_base_addr = %ffts tcube_pipe = <PIPE_FIX> tvector_pipe = <PIPE_MTE3>
  %lock = hivm.hir.create_sync_block_lock from %locks : from memref<?xi8> to memref<1xi64>
  hivm.hir.sync_block_lock lock_var(%lock : memref<1xi64>)
  hivm.hir.sync_block_unlock lock_var(%lock : memref<1xi64>)
  return
}
