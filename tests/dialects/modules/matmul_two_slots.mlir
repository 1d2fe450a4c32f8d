// c = sum over k of a x b with the transposed right matrix; two slots in L1, the events of mmadL1 given, unit flags.
#gm = #hivm.address_space<gm>
#l1 = #hivm.address_space<cbuf>
#l0c = #hivm.address_space<cc>
module {
  func.func @accumulate(%a: memref<64x?xbf16, #gm>, %b: memref<64x?xbf16, #gm>, %c: memref<64x64xf32, #gm>, %bias: memref<64xf32, #l1>, %steps: index)
      attributes {hacc.function_kind = #hacc.function_kind<DEVICE>, hivm.func_core_type = #hivm.func_core_type<AIC>} {
    %none = arith.constant 0 : index
    %one = arith.constant 1 : index
    %two = arith.constant 2 : index
    %size = arith.constant 64 : index
    %n1 = arith.constant -1 : i64
    %c0 = arith.constant 0 : i64
    %c1 = arith.constant 1 : i64
    %at8k = arith.constant 8192 : i64
    %at16k = arith.constant 16384 : i64
    %at24k = arith.constant 24576 : i64
    %l1a = hivm.hir.pointer_cast(%c0, %at8k) : memref<4x4x16x16xbf16, #l1>
    %l1b = hivm.hir.pointer_cast(%at16k, %at24k) : memref<4x4x16x16xbf16, #l1>
    %acc = hivm.hir.pointer_cast(%c0) : memref<4x4x16x16xf32, #l0c>
    hivm.hir.set_flag[<PIPE_MTE1>, <PIPE_MTE2>, <EVENT_ID0>]
    hivm.hir.set_flag[<PIPE_MTE1>, <PIPE_MTE2>, <EVENT_ID1>]
    hivm.hir.set_flag[<PIPE_M>, <PIPE_MTE1>, <EVENT_ID0>]
    hivm.hir.set_flag[<PIPE_M>, <PIPE_MTE1>, <EVENT_ID1>]
    scf.for %i = %none to %steps step %one {
      %column = arith.muli %i, %size : index
      %round = arith.remui %i, %two : index
      %i_i64 = arith.index_cast %i : index to i64
      %slot = arith.index_cast %round : index to i64
      %init = arith.cmpi eq, %i, %none : index
      %ga = memref.subview %a[0, %column] [64, 64] [1, 1] : memref<64x?xbf16, #gm> to memref<64x64xbf16, strided<[?, 1], offset: ?>, #gm>
      %gb = memref.subview %b[0, %column] [64, 64] [1, 1] : memref<64x?xbf16, #gm> to memref<64x64xbf16, strided<[?, 1], offset: ?>, #gm>
      hivm.hir.wait_flag[<PIPE_MTE1>, <PIPE_MTE2>, %slot]
      hivm.hir.nd2nz {dst_continuous} ins(%ga : memref<64x64xbf16, strided<[?, 1], offset: ?>, #gm>) outs(%l1a : memref<4x4x16x16xbf16, #l1>)
      hivm.hir.nd2nz {dst_continuous} ins(%gb : memref<64x64xbf16, strided<[?, 1], offset: ?>, #gm>) outs(%l1b : memref<4x4x16x16xbf16, #l1>)
      hivm.hir.set_flag[<PIPE_MTE2>, <PIPE_MTE1>, %slot]
      hivm.hir.mmadL1 {b_transpose} ins(%l1a, %l1b, %init, %size, %size, %size, %bias : memref<4x4x16x16xbf16, #l1>, memref<4x4x16x16xbf16, #l1>, i1, index, index, index, memref<64xf32, #l1>) outs(%acc : memref<4x4x16x16xf32, #l0c>) sync_related_args(%slot, %n1, %n1, %slot, %i_i64, %c0, %c1 : i64, i64, i64, i64, i64, i64, i64) unit_flag_mode([#hivm.unit_flag<ENABLED_WITH_UPDATE>])
    }
    hivm.hir.fixpipe {dma_mode = #hivm.dma_mode<nz2nd>} ins(%acc : memref<4x4x16x16xf32, #l0c>) outs(%c : memref<64x64xf32, #gm>) unit_flag_mode([#hivm.unit_flag<ENABLED_WITH_UPDATE>])
    hivm.hir.wait_flag[<PIPE_M>, <PIPE_MTE1>, <EVENT_ID0>]
    hivm.hir.wait_flag[<PIPE_M>, <PIPE_MTE1>, <EVENT_ID1>]
    hivm.hir.wait_flag[<PIPE_MTE1>, <PIPE_MTE2>, <EVENT_ID0>]
    hivm.hir.wait_flag[<PIPE_MTE1>, <PIPE_MTE2>, <EVENT_ID1>]
    return
  }
}
