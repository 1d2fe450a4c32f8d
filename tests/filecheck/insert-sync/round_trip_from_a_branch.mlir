// RUN: tilelang-npu opt %s -p insert-sync | filecheck %s
// In a branch the Vector core waits for the Cube core's store before it releases the next iteration's write, or the write
// after the loop: no barrier.
// CHECK-LABEL: @behind_mix_aic
// CHECK-NOT:     hivm.hir.pipe_barrier[<PIPE_FIX>]
// CHECK-LABEL: @behind_mix_aiv
// Here it releases the write before it waits.
// CHECK-LABEL: @in_front_mix_aic
// CHECK:         hivm.hir.pipe_barrier[<PIPE_FIX>]
// CHECK-LABEL: @in_front_mix_aiv
func.func @behind_mix_aic(%ffts: i64, %W: memref<16x16xf32, #hivm.address_space<gm>>, %n: index, %d: i1) attributes {hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>, hivm.func_core_type = #hivm.func_core_type<AIC>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %true = arith.constant true
  %p0 = arith.constant 0 : i64
  %p1 = arith.constant 1024 : i64
  %a = hivm.hir.pointer_cast(%p0) : memref<1x1x16x16xf16, #hivm.address_space<cbuf>>
  %b = hivm.hir.pointer_cast(%p1) : memref<1x1x16x16xf16, #hivm.address_space<cbuf>>
  %c = hivm.hir.pointer_cast(%p0) : memref<1x1x16x16xf32, #hivm.address_space<cc>>
  hivm.hir.mmadL1 ins(%a, %b, %true, %c16, %c16, %c16 : memref<1x1x16x16xf16, #hivm.address_space<cbuf>>, memref<1x1x16x16xf16, #hivm.address_space<cbuf>>, i1, index, index, index) outs(%c : memref<1x1x16x16xf32, #hivm.address_space<cc>>)
  scf.for %t = %c0 to %n step %c1 {
    scf.for %i = %c0 to %n step %c1 {
      hivm.hir.sync_block_wait[<CUBE>, <PIPE_MTE2>, <PIPE_S>] flag = 1
      scf.if %d {
        hivm.hir.fixpipe {dma_mode = #hivm.dma_mode<nz2nd>} ins(%c : memref<1x1x16x16xf32, #hivm.address_space<cc>>) outs(%W : memref<16x16xf32, #hivm.address_space<gm>>)
        hivm.hir.sync_block_set[<CUBE>, <PIPE_FIX>, <PIPE_S>] flag = 0 ffts_base_addr = %ffts
      }
    }
    hivm.hir.sync_block_wait[<CUBE>, <PIPE_MTE2>, <PIPE_S>] flag = 1
  }
  return
}
func.func @behind_mix_aiv(%ffts: i64, %W: memref<16x16xf32, #hivm.address_space<gm>>, %n: index, %d: i1) attributes {hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>, hivm.func_core_type = #hivm.func_core_type<AIV>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %true = arith.constant true
  %p0 = arith.constant 0 : i64
  %p1 = arith.constant 1024 : i64
  %u = hivm.hir.pointer_cast(%p0) : memref<16x16xf32, #hivm.address_space<ub>>
  scf.for %t = %c0 to %n step %c1 {
    hivm.hir.sync_block_set[<VECTOR>, <PIPE_MTE2>, <PIPE_S>] flag = 1 ffts_base_addr = %ffts
    scf.for %i = %c0 to %n step %c1 {
      scf.if %d {
        hivm.hir.sync_block_wait[<VECTOR>, <PIPE_FIX>, <PIPE_S>] flag = 0
        hivm.hir.load ins(%W : memref<16x16xf32, #hivm.address_space<gm>>) outs(%u : memref<16x16xf32, #hivm.address_space<ub>>)
      }
      hivm.hir.sync_block_set[<VECTOR>, <PIPE_MTE2>, <PIPE_S>] flag = 1 ffts_base_addr = %ffts
    }
  }
  return
}
func.func @in_front_mix_aic(%ffts: i64, %W: memref<16x16xf32, #hivm.address_space<gm>>, %n: index, %d: i1) attributes {hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>, hivm.func_core_type = #hivm.func_core_type<AIC>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %true = arith.constant true
  %p0 = arith.constant 0 : i64
  %p1 = arith.constant 1024 : i64
  %a = hivm.hir.pointer_cast(%p0) : memref<1x1x16x16xf16, #hivm.address_space<cbuf>>
  %b = hivm.hir.pointer_cast(%p1) : memref<1x1x16x16xf16, #hivm.address_space<cbuf>>
  %c = hivm.hir.pointer_cast(%p0) : memref<1x1x16x16xf32, #hivm.address_space<cc>>
  hivm.hir.mmadL1 ins(%a, %b, %true, %c16, %c16, %c16 : memref<1x1x16x16xf16, #hivm.address_space<cbuf>>, memref<1x1x16x16xf16, #hivm.address_space<cbuf>>, i1, index, index, index) outs(%c : memref<1x1x16x16xf32, #hivm.address_space<cc>>)
  scf.for %t = %c0 to %n step %c1 {
    scf.for %i = %c0 to %n step %c1 {
      hivm.hir.sync_block_wait[<CUBE>, <PIPE_MTE2>, <PIPE_S>] flag = 1
      scf.if %d {
        hivm.hir.fixpipe {dma_mode = #hivm.dma_mode<nz2nd>} ins(%c : memref<1x1x16x16xf32, #hivm.address_space<cc>>) outs(%W : memref<16x16xf32, #hivm.address_space<gm>>)
        hivm.hir.sync_block_set[<CUBE>, <PIPE_FIX>, <PIPE_S>] flag = 0 ffts_base_addr = %ffts
      }
    }
    hivm.hir.sync_block_wait[<CUBE>, <PIPE_MTE2>, <PIPE_S>] flag = 1
  }
  return
}
func.func @in_front_mix_aiv(%ffts: i64, %W: memref<16x16xf32, #hivm.address_space<gm>>, %n: index, %d: i1) attributes {hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>, hivm.func_core_type = #hivm.func_core_type<AIV>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %true = arith.constant true
  %p0 = arith.constant 0 : i64
  %p1 = arith.constant 1024 : i64
  %u = hivm.hir.pointer_cast(%p0) : memref<16x16xf32, #hivm.address_space<ub>>
  scf.for %t = %c0 to %n step %c1 {
    hivm.hir.sync_block_set[<VECTOR>, <PIPE_MTE2>, <PIPE_S>] flag = 1 ffts_base_addr = %ffts
    scf.for %i = %c0 to %n step %c1 {
      hivm.hir.sync_block_set[<VECTOR>, <PIPE_MTE2>, <PIPE_S>] flag = 1 ffts_base_addr = %ffts
      scf.if %d {
        hivm.hir.sync_block_wait[<VECTOR>, <PIPE_FIX>, <PIPE_S>] flag = 0
        hivm.hir.load ins(%W : memref<16x16xf32, #hivm.address_space<gm>>) outs(%u : memref<16x16xf32, #hivm.address_space<ub>>)
      }
    }
  }
  return
}
