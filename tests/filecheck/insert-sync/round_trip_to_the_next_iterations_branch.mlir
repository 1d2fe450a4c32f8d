// RUN: tilelang-npu opt %s -p insert-sync | filecheck %s
// The Cube core waits for the Vector core's load of an iteration when it answers in the branch of the next iteration: no
// barrier.
// CHECK-LABEL: @answered_mix_aiv
// CHECK:         scf.if
// CHECK-NEXT:      sync_block_wait[<VECTOR>, <PIPE_FIX>, <PIPE_S>] flag = 1
// CHECK-NEXT:      hivm.hir.load
// CHECK-NEXT:    }
// The Cube core has not waited for the load after the flag.
// CHECK-LABEL: @loaded_again_mix_aiv
// CHECK:         hivm.hir.pipe_barrier[<PIPE_MTE2>]
// CHECK:         hivm.hir.pipe_barrier[<PIPE_MTE2>]
func.func @answered_mix_aic(%ffts: i64, %W: memref<16x16xf32, #hivm.address_space<gm>>, %n: index, %d: i1) attributes {hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>, hivm.func_core_type = #hivm.func_core_type<AIC>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %p0 = arith.constant 0 : i64
  %c = hivm.hir.pointer_cast(%p0) : memref<1x1x16x16xf32, #hivm.address_space<cc>>
  scf.for %i = %c0 to %n step %c1 {
    hivm.hir.sync_block_wait[<CUBE>, <PIPE_MTE2>, <PIPE_S>] flag = 0
    scf.if %d {
      hivm.hir.fixpipe {dma_mode = #hivm.dma_mode<nz2nd>} ins(%c : memref<1x1x16x16xf32, #hivm.address_space<cc>>) outs(%W : memref<16x16xf32, #hivm.address_space<gm>>)
      hivm.hir.sync_block_set[<CUBE>, <PIPE_FIX>, <PIPE_S>] flag = 1 ffts_base_addr = %ffts
    }
  }
  hivm.hir.sync_block_wait[<CUBE>, <PIPE_MTE2>, <PIPE_S>] flag = 0
  return
}
func.func @answered_mix_aiv(%ffts: i64, %W: memref<16x16xf32, #hivm.address_space<gm>>, %n: index, %d: i1) attributes {hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>, hivm.func_core_type = #hivm.func_core_type<AIV>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %p0 = arith.constant 0 : i64
  %u = hivm.hir.pointer_cast(%p0) : memref<16x16xf32, #hivm.address_space<ub>>
  hivm.hir.sync_block_set[<VECTOR>, <PIPE_MTE2>, <PIPE_S>] flag = 0 ffts_base_addr = %ffts
  scf.for %i = %c0 to %n step %c1 {
    scf.if %d {
      hivm.hir.sync_block_wait[<VECTOR>, <PIPE_FIX>, <PIPE_S>] flag = 1
      hivm.hir.load ins(%W : memref<16x16xf32, #hivm.address_space<gm>>) outs(%u : memref<16x16xf32, #hivm.address_space<ub>>)
    }
    hivm.hir.sync_block_set[<VECTOR>, <PIPE_MTE2>, <PIPE_S>] flag = 0 ffts_base_addr = %ffts
  }
  return
}
func.func @loaded_again_mix_aic(%ffts: i64, %W: memref<16x16xf32, #hivm.address_space<gm>>, %n: index, %d: i1) attributes {hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>, hivm.func_core_type = #hivm.func_core_type<AIC>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %p0 = arith.constant 0 : i64
  %c = hivm.hir.pointer_cast(%p0) : memref<1x1x16x16xf32, #hivm.address_space<cc>>
  scf.for %i = %c0 to %n step %c1 {
    hivm.hir.sync_block_wait[<CUBE>, <PIPE_MTE2>, <PIPE_S>] flag = 0
    scf.if %d {
      hivm.hir.fixpipe {dma_mode = #hivm.dma_mode<nz2nd>} ins(%c : memref<1x1x16x16xf32, #hivm.address_space<cc>>) outs(%W : memref<16x16xf32, #hivm.address_space<gm>>)
      hivm.hir.sync_block_set[<CUBE>, <PIPE_FIX>, <PIPE_S>] flag = 1 ffts_base_addr = %ffts
    }
  }
  hivm.hir.sync_block_wait[<CUBE>, <PIPE_MTE2>, <PIPE_S>] flag = 0
  return
}
func.func @loaded_again_mix_aiv(%ffts: i64, %W: memref<16x16xf32, #hivm.address_space<gm>>, %n: index, %d: i1) attributes {hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>, hivm.func_core_type = #hivm.func_core_type<AIV>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %p0 = arith.constant 0 : i64
  %u = hivm.hir.pointer_cast(%p0) : memref<16x16xf32, #hivm.address_space<ub>>
  hivm.hir.sync_block_set[<VECTOR>, <PIPE_MTE2>, <PIPE_S>] flag = 0 ffts_base_addr = %ffts
  scf.for %i = %c0 to %n step %c1 {
    scf.if %d {
      hivm.hir.sync_block_wait[<VECTOR>, <PIPE_FIX>, <PIPE_S>] flag = 1
      hivm.hir.load ins(%W : memref<16x16xf32, #hivm.address_space<gm>>) outs(%u : memref<16x16xf32, #hivm.address_space<ub>>)
    }
    hivm.hir.sync_block_set[<VECTOR>, <PIPE_MTE2>, <PIPE_S>] flag = 0 ffts_base_addr = %ffts
    hivm.hir.load ins(%W : memref<16x16xf32, #hivm.address_space<gm>>) outs(%u : memref<16x16xf32, #hivm.address_space<ub>>)
  }
  return
}
