// y = exp(x) * s for 4096-element tiles, two slots in UB, with a tail that is padded.
#gm = #hivm.address_space<gm>
#ub = #hivm.address_space<ub>
module attributes {hacc.target = #hacc.target<"Ascend910B3">, hivm.module_core_type = #hivm.module_core_type<AIV>} {
  func.func @scaled_exp(%x: memref<?xf32, #gm> {tt.divisibility = 16 : i32}, %y: memref<?xf32, #gm>, %s: f32, %n: i32)
      attributes {hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>, hivm.func_core_type = #hivm.func_core_type<AIV>} {
    hivm.hir.set_mask_norm
    %c0_i64 = arith.constant 0 : i64
    %c1_i64 = arith.constant 1 : i64
    %c2_i64 = arith.constant 2 : i64
    %c16384_i64 = arith.constant 16384 : i64
    %c32768_i64 = arith.constant 32768 : i64
    %zero = arith.constant 0.000000e+00 : f32
    %none = arith.constant 0 : index
    %one = arith.constant 1 : index
    %tile = arith.constant 4096 : index
    %block = hivm.hir.get_block_idx -> i64
    %blocks = hivm.hir.get_block_num -> i64
    %first = arith.index_cast %block : i64 to index
    %step = arith.index_cast %blocks : i64 to index
    %size = arith.index_cast %n : i32 to index
    %tiles = arith.ceildivui %size, %tile : index
    %in = hivm.hir.pointer_cast(%c0_i64, %c16384_i64) : memref<4096xf32, #ub>
    annotation.mark %in {hivm.multi_buffer = 2 : i32} : memref<4096xf32, #ub>
    %out = hivm.hir.pointer_cast(%c32768_i64) : memref<4096xf32, #ub>
    hivm.hir.set_flag[<PIPE_V>, <PIPE_MTE2>, <EVENT_ID0>]
    hivm.hir.set_flag[<PIPE_V>, <PIPE_MTE2>, <EVENT_ID1>]
    hivm.hir.set_flag[<PIPE_MTE3>, <PIPE_V>, <EVENT_ID0>]
    scf.for %i = %first to %tiles step %step {
      %begin = arith.muli %i, %tile : index
      %left = arith.subi %size, %begin : index
      %length = arith.minui %left, %tile : index
      %missing = arith.subi %tile, %length : index
      %i_i64 = arith.index_cast %i : index to i64
      %slot = arith.remui %i_i64, %c2_i64 : i64
      %from = memref.subview %x[%begin] [%length] [1] : memref<?xf32, #gm> to memref<?xf32, strided<[1], offset: ?>, #gm>
      %to = memref.subview %y[%begin] [%length] [1] : memref<?xf32, #gm> to memref<?xf32, strided<[1], offset: ?>, #gm>
      hivm.hir.wait_flag[<PIPE_V>, <PIPE_MTE2>, %slot]
      hivm.hir.load ins(%from : memref<?xf32, strided<[1], offset: ?>, #gm>) outs(%in : memref<4096xf32, #ub>) pad_mode = <PadValue> pad_value = %zero : f32 left_padding_num = %none : index right_padding_num = %missing : index
      hivm.hir.set_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID0>]
      hivm.hir.wait_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID0>]
      hivm.hir.wait_flag[<PIPE_MTE3>, <PIPE_V>, <EVENT_ID0>]
      hivm.hir.vexp ins(%in : memref<4096xf32, #ub>) outs(%out : memref<4096xf32, #ub>)
      hivm.hir.set_flag[<PIPE_V>, <PIPE_MTE2>, %slot]
      hivm.hir.pipe_barrier[<PIPE_V>]
      hivm.hir.vmul ins(%out, %s : memref<4096xf32, #ub>, f32) outs(%out : memref<4096xf32, #ub>)
      hivm.hir.set_flag[<PIPE_V>, <PIPE_MTE3>, <EVENT_ID0>]
      hivm.hir.wait_flag[<PIPE_V>, <PIPE_MTE3>, <EVENT_ID0>]
      %valid = memref.subview %out[0] [%length] [1] : memref<4096xf32, #ub> to memref<?xf32, strided<[1]>, #ub>
      hivm.hir.store ins(%valid : memref<?xf32, strided<[1]>, #ub>) outs(%to : memref<?xf32, strided<[1], offset: ?>, #gm>)
      hivm.hir.set_flag[<PIPE_MTE3>, <PIPE_V>, <EVENT_ID0>]
    }
    hivm.hir.wait_flag[<PIPE_V>, <PIPE_MTE2>, <EVENT_ID0>]
    hivm.hir.wait_flag[<PIPE_V>, <PIPE_MTE2>, <EVENT_ID1>]
    hivm.hir.wait_flag[<PIPE_MTE3>, <PIPE_V>, <EVENT_ID0>]
    hivm.hir.pipe_barrier[<PIPE_ALL>]
    return
  }
}
