// o = a x b + row, the product handed from the Cube to the two Vector cores through the workspace; flag 3 full, flag 4 free.
#gm = #hivm.address_space<gm>
#l1 = #hivm.address_space<cbuf>
#l0c = #hivm.address_space<cc>
#ub = #hivm.address_space<ub>
module attributes {hacc.target = #hacc.target<"Ascend910_9392">, hivm.module_core_type = #hivm.module_core_type<MIX>} {
  func.func @k_infer_workspace_shape_function() -> index attributes {hacc.function_kind = #hacc.function_kind<HOST>, hacc.host_func_type = #hacc.host_func_type<infer_workspace_shape_function>} {
    %bytes = arith.constant 16384 : index
    return %bytes : index
  }
  func.func @k_mix_aic(%ffts: i64 {hacc.arg_type = #hacc.arg_type<ffts_base_address>}, %ws: memref<?xi8, #gm> {hacc.arg_type = #hacc.arg_type<workspace>}, %a: memref<64x64xf16, #gm>, %b: memref<64x64xf16, #gm>, %row: memref<1x64xf32, #gm>, %o: memref<64x64xf32, #gm>)
      attributes {WorkspaceArgIdx = 1 : i64, hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>, hivm.func_core_type = #hivm.func_core_type<AIC>, hivm.part_of_mix, mix_mode = "mix"} {
    hivm.hir.set_ffts_base_addr %ffts
    %c0 = arith.constant 0 : i64
    %c8192 = arith.constant 8192 : i64
    %size = arith.constant 64 : index
    %yes = arith.constant true
    %from = arith.constant 0 : index
    %space = memref.view %ws[%from][] : memref<?xi8, #gm> to memref<64x64xf32, #gm>
    %l1a = hivm.hir.pointer_cast(%c0) : memref<4x4x16x16xf16, #l1>
    %l1b = hivm.hir.pointer_cast(%c8192) : memref<4x4x16x16xf16, #l1>
    %acc = hivm.hir.pointer_cast(%c0) : memref<4x4x16x16xf32, #l0c>
    hivm.hir.nd2nz {dst_continuous} ins(%a : memref<64x64xf16, #gm>) outs(%l1a : memref<4x4x16x16xf16, #l1>)
    hivm.hir.nd2nz {dst_continuous} ins(%b : memref<64x64xf16, #gm>) outs(%l1b : memref<4x4x16x16xf16, #l1>)
    hivm.hir.mmadL1 ins(%l1a, %l1b, %yes, %size, %size, %size : memref<4x4x16x16xf16, #l1>, memref<4x4x16x16xf16, #l1>, i1, index, index, index) outs(%acc : memref<4x4x16x16xf32, #l0c>)
    hivm.hir.sync_block_wait[<CUBE>, <PIPE_MTE2>, <PIPE_S>] flag = 4
    hivm.hir.fixpipe {dma_mode = #hivm.dma_mode<nz2nd>} ins(%acc : memref<4x4x16x16xf32, #l0c>) outs(%space : memref<64x64xf32, #gm>)
    hivm.hir.sync_block_set[<CUBE>, <PIPE_FIX>, <PIPE_S>] flag = 3 ffts_base_addr = %ffts
    return
  }
  func.func @k_mix_aiv(%ffts: i64 {hacc.arg_type = #hacc.arg_type<ffts_base_address>}, %ws: memref<?xi8, #gm> {hacc.arg_type = #hacc.arg_type<workspace>}, %a: memref<64x64xf16, #gm>, %b: memref<64x64xf16, #gm>, %row: memref<1x64xf32, #gm>, %o: memref<64x64xf32, #gm>)
      attributes {WorkspaceArgIdx = 1 : i64, hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>, hivm.func_core_type = #hivm.func_core_type<AIV>, hivm.part_of_mix, mix_mode = "mix"} {
    hivm.hir.set_ffts_base_addr %ffts
    hivm.hir.set_mask_norm
    %c0 = arith.constant 0 : i64
    %c8192 = arith.constant 8192 : i64
    %c8448 = arith.constant 8448 : i64
    %from = arith.constant 0 : index
    %rows = arith.constant 32 : index
    %half = hivm.hir.get_sub_block_idx -> i64
    %which = arith.index_cast %half : i64 to index
    %top = arith.muli %which, %rows : index
    %space = memref.view %ws[%from][] : memref<?xi8, #gm> to memref<64x64xf32, #gm>
    %part = memref.subview %space[%top, 0] [32, 64] [1, 1] : memref<64x64xf32, #gm> to memref<32x64xf32, strided<[64, 1], offset: ?>, #gm>
    %to = memref.subview %o[%top, 0] [32, 64] [1, 1] : memref<64x64xf32, #gm> to memref<32x64xf32, strided<[64, 1], offset: ?>, #gm>
    %x = hivm.hir.pointer_cast(%c0) : memref<32x64xf32, #ub>
    %r = hivm.hir.pointer_cast(%c8192) : memref<1x64xf32, #ub>
    %t = hivm.hir.pointer_cast(%c8448) : memref<2048xf32, #ub>
    hivm.hir.sync_block_set[<VECTOR>, <PIPE_MTE2>, <PIPE_S>] flag = 4 ffts_base_addr = %ffts
    hivm.hir.load ins(%row : memref<1x64xf32, #gm>) outs(%r : memref<1x64xf32, #ub>)
    hivm.hir.sync_block_wait[<VECTOR>, <PIPE_FIX>, <PIPE_S>] flag = 3
    hivm.hir.load ins(%part : memref<32x64xf32, strided<[64, 1], offset: ?>, #gm>) outs(%x : memref<32x64xf32, #ub>)
    hivm.hir.vadd ins(%x, %r : memref<32x64xf32, #ub>, memref<1x64xf32, #ub>) outs(%x : memref<32x64xf32, #ub>) temp_buffer(%t : memref<2048xf32, #ub>) broadcast = [0]
    hivm.hir.store ins(%x : memref<32x64xf32, #ub>) outs(%to : memref<32x64xf32, strided<[64, 1], offset: ?>, #gm>)
    return
  }
}
