// RUN: tilelang-npu opt %s --split-input-file --verify-diagnostics | filecheck %s
// CHECK: 'hivm.hir.sync_block' op tcube_pipe should be defined!
hivm.hir.sync_block[<ALL_CUBE>]
// -----
// CHECK: 'hivm.hir.sync_block' op vector_pipe should not be defined!
hivm.hir.sync_block[<BARRIER_CUBE>] vector_pipe = <PIPE_MTE2>
// -----
// CHECK: 'hivm.hir.wait_flag' op Event ID is needed!
"hivm.hir.wait_flag"() <{set_pipe = #hivm.pipe<PIPE_V>, wait_pipe = #hivm.pipe<PIPE_S>}> : () -> ()
// -----
// CHECK: expected #hivm.event to be one of: EVENT_ID0, EVENT_ID1,
hivm.hir.set_flag[<PIPE_V>, <PIPE_S>, <EVENT_ID9>]
// -----
// CHECK: 'hivm.hir.create_sync_block_lock' op 'create_sync_block_lock' op should only support static shape
%0 = hivm.hir.create_sync_block_lock : memref<?xi64>
