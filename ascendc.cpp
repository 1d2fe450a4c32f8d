module attributes {hacc.target = #hacc.target<"Ascend910B2">, hivm.module_core_type = #hivm.module_core_type<AIV>} {
  func.func @main_infer_task_type_function() -> i8 attributes {hacc.function_kind = #hacc.function_kind<HOST>, hacc.host_func_type = #hacc.host_func_type<infer_task_type_function>} {
    %0 = arith.constant 10 : i8
    return %0 : i8
  }
  func.func @main(%ffts: i64 {hacc.arg_type = #hacc.arg_type<ffts_base_address>}, %lock: memref<?xi8, #hivm.address_space<gm>> {hacc.arg_type = #hacc.arg_type<sync_block_lock>}, %workspace: memref<?xi8, #hivm.address_space<gm>> {hacc.arg_type = #hacc.arg_type<workspace>}, %A_log: memref<32xf16, #hivm.address_space<gm>>, %a: memref<664x32xf16, #hivm.address_space<gm>>, %dt_bias: memref<32xf16, #hivm.address_space<gm>>, %query: memref<664x16x128xf16, #hivm.address_space<gm>>, %key: memref<664x16x128xf16, #hivm.address_space<gm>>, %value: memref<664x32x128xf16, #hivm.address_space<gm>>, %beta: memref<664x32xf16, #hivm.address_space<gm>>, %init_state: memref<1000x32x128x128xf16, #hivm.address_space<gm>>, %ssm_state_indices: memref<100xi32, #hivm.address_space<gm>>, %cu_seqlens: memref<101xi32, #hivm.address_space<gm>>, %out: memref<664x32x128xf16, #hivm.address_space<gm>>, %final_state: memref<100x32x128x128xf16, #hivm.address_space<gm>>, %grid_x: i32, %grid_y: i32, %grid_z: i32) attributes {SyncBlockLockArgIdx = 0 : i64, WorkspaceArgIdx = 1 : i64, hacc.block_dim = 48 : i64, hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>, hivm.func_core_type = #hivm.func_core_type<AIV>, mix_mode = "aiv"} {
    hivm.hir.set_mask_norm
    %c2 = arith.constant 2 : index
    %c0_i64 = arith.constant 0 : i64
    %c33024_i64 = arith.constant 33024 : i64
    %c66048_i64 = arith.constant 66048 : i64
    %c99072_i64 = arith.constant 99072 : i64
    %c131840_i64 = arith.constant 131840 : i64
    %c98816_i64 = arith.constant 98816 : i64
    %c32768_i64 = arith.constant 32768 : i64
    %c148224_i64 = arith.constant 148224 : i64
    %c164608_i64 = arith.constant 164608 : i64
    %c165120_i64 = arith.constant 165120 : i64
    %c165632_i64 = arith.constant 165632 : i64
    %c166144_i64 = arith.constant 166144 : i64
    %c166656_i64 = arith.constant 166656 : i64
    %c65792_i64 = arith.constant 65792 : i64
    %c167168_i64 = arith.constant 167168 : i64
    %c167424_i64 = arith.constant 167424 : i64
    %c115200_i64 = arith.constant 115200 : i64
    %c33280_i64 = arith.constant 33280 : i64
    %c167680_i64 = arith.constant 167680 : i64
    %c167936_i64 = arith.constant 167936 : i64
    %c167968_i64 = arith.constant 167968 : i64
    %c168000_i64 = arith.constant 168000 : i64
    %c168032_i64 = arith.constant 168032 : i64
    %c168064_i64 = arith.constant 168064 : i64
    %c168096_i64 = arith.constant 168096 : i64
    %c168128_i64 = arith.constant 168128 : i64
    %c1000 = arith.constant 1000 : index
    %c1 = arith.constant 1 : index
    %c0 = arith.constant 0 : index
    %c64 = arith.constant 64 : index
    %cst = arith.constant 0.000000e+00 : f16
    %c999 = arith.constant 999 : index
    %c664 = arith.constant 664 : index
    %c128 = arith.constant 128 : index
    %c663 = arith.constant 663 : index
    %c100 = arith.constant 100 : index
    %c99 = arith.constant 99 : index
    %0 = hivm.hir.get_block_idx -> i64
    %block = arith.index_cast %0 : i64 to index
    %vid = arith.remui %block, %c2 : index
    %cid = arith.divui %block, %c2 : index
    %c133 = arith.constant 133 : index
    %1 = arith.muli %cid, %c133 : index
    %c8 = arith.constant 8 : index
    %2 = arith.cmpi slt, %cid, %c8 : index
    %3 = arith.select %2, %cid, %c8 : index
    %start_work = arith.addi %1, %3 : index
    %c1_i32 = arith.constant 1 : i32
    %c0_i32 = arith.constant 0 : i32
    %4 = arith.select %2, %c1_i32, %c0_i32 : i32
    %c133_i32 = arith.constant 133 : i32
    %count_work = arith.addi %c133_i32, %4 : i32
    %q_buf = hivm.hir.pointer_cast(%c164608_i64) : memref<2x128xf16, #hivm.address_space<ub>>
    %k_buf = hivm.hir.pointer_cast(%c165120_i64) : memref<2x128xf16, #hivm.address_space<ub>>
    %v_buf = hivm.hir.pointer_cast(%c65792_i64) : memref<2x64xf16, #hivm.address_space<ub>>
    %k_1d = hivm.hir.pointer_cast(%c165632_i64) : memref<1x128xf32, #hivm.address_space<ub>>
    %h_vec = hivm.hir.pointer_cast(%c0_i64) : memref<64x128xf32, #hivm.address_space<ub>>
    %pred_1d = hivm.hir.pointer_cast(%c167168_i64) : memref<64x1xf32, #hivm.address_space<ub>>
    %delta_1d = hivm.hir.pointer_cast(%c167424_i64) : memref<64x1xf32, #hivm.address_space<ub>>
    %scalar_fp32 = hivm.hir.pointer_cast(%c167936_i64) : memref<1xf32, #hivm.address_space<ub>>
    %softplus_val = hivm.hir.pointer_cast(%c167968_i64) : memref<1xf32, #hivm.address_space<ub>>
    %norm_sq = hivm.hir.pointer_cast(%c166144_i64) : memref<1x128xf32, #hivm.address_space<ub>>
    %norm_val = hivm.hir.pointer_cast(%c168000_i64) : memref<1xf32, #hivm.address_space<ub>>
    %c134 = arith.constant 134 : index
    scf.for %work_i = %c0 to %c134 step %c1 {
      %5 = arith.index_cast %count_work : i32 to index
      %6 = arith.cmpi slt, %work_i, %5 : index
      scf.if %6 {
        %scalar_fp16 = hivm.hir.pointer_cast(%c168096_i64) : memref<1xf16, #hivm.address_space<ub>>
        %h_store_vec = hivm.hir.pointer_cast(%c148224_i64) : memref<64x128xf16, #hivm.address_space<ub>>
        %flat_idx = arith.addi %start_work, %work_i : index
        %c32 = arith.constant 32 : index
        %v_head_idx = arith.remui %flat_idx, %c32 : index
        %seq_idx = arith.divui %flat_idx, %c32 : index
        %k_head_idx = arith.divui %v_head_idx, %c2 : index
        %v_offset = arith.muli %vid, %c64 : index
        %seq_start = memref.load %cu_seqlens[%seq_idx] : memref<101xi32, #hivm.address_space<gm>>
        %7 = arith.addi %seq_idx, %c1 : index
        %seq_end = memref.load %cu_seqlens[%7] : memref<101xi32, #hivm.address_space<gm>>
        %seq_len = arith.subi %seq_end, %seq_start : i32
        %state_idx = memref.load %ssm_state_indices[%seq_idx] : memref<100xi32, #hivm.address_space<gm>>
        %cst_1 = arith.constant 0.000000e+00 : f32
        hivm.hir.vbrc ins(%cst_1 : f32) outs(%h_vec : memref<64x128xf32, #hivm.address_space<ub>>)
        %8 = arith.cmpi sge, %state_idx, %c0_i32 : i32
        scf.if %8 {
          %h_load_vec = hivm.hir.pointer_cast(%c131840_i64) : memref<64x128xf16, #hivm.address_space<ub>>
          %9 = arith.index_cast %state_idx : i32 to index
          %10 = arith.subi %c1000, %9 : index
          %11 = arith.cmpi slt, %10, %c1 : index
          %12 = arith.select %11, %c0, %c64 : index
          scf.if %11 {
            hivm.hir.vbrc ins(%cst : f16) outs(%h_load_vec : memref<64x128xf16, #hivm.address_space<ub>>)
          }
          hivm.hir.set_flag[<PIPE_V>, <PIPE_MTE2>, <EVENT_ID0>]
          %13 = arith.minsi %9, %c999 : index
          %14 = memref.subview %init_state[%13, %v_head_idx, %v_offset, 0] [1, 1, %12, 128] [1, 1, 1, 1] : memref<1000x32x128x128xf16, #hivm.address_space<gm>> to memref<?x128xf16, strided<[128, 1], offset: ?>, #hivm.address_space<gm>>
          %15 = memref.subview %h_load_vec[0, 0] [%12, 128] [1, 1] : memref<64x128xf16, #hivm.address_space<ub>> to memref<?x128xf16, strided<[128, 1]>, #hivm.address_space<ub>>
          hivm.hir.wait_flag[<PIPE_V>, <PIPE_MTE2>, <EVENT_ID0>]
          hivm.hir.load ins(%14 : memref<?x128xf16, strided<[128, 1], offset: ?>, #hivm.address_space<gm>>) outs(%15 : memref<?x128xf16, strided<[128, 1]>, #hivm.address_space<ub>>)
          hivm.hir.set_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID1>]
          hivm.hir.wait_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID1>]
          hivm.hir.vcast ins(%h_load_vec : memref<64x128xf16, #hivm.address_space<ub>>) outs(%h_vec : memref<64x128xf32, #hivm.address_space<ub>>)
        }
        %16 = memref.subview %A_log[%v_head_idx] [1] [1] : memref<32xf16, #hivm.address_space<gm>> to memref<1xf16, strided<[1], offset: ?>, #hivm.address_space<gm>>
        hivm.hir.load ins(%16 : memref<1xf16, strided<[1], offset: ?>, #hivm.address_space<gm>>) outs(%scalar_fp16 : memref<1xf16, #hivm.address_space<ub>>)
        hivm.hir.set_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID2>]
        hivm.hir.wait_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID2>]
        hivm.hir.vcast ins(%scalar_fp16 : memref<1xf16, #hivm.address_space<ub>>) outs(%scalar_fp32 : memref<1xf32, #hivm.address_space<ub>>)
        hivm.hir.vexp ins(%scalar_fp32 : memref<1xf32, #hivm.address_space<ub>>) outs(%softplus_val : memref<1xf32, #hivm.address_space<ub>>)
        %exp_A = memref.load %softplus_val[%c0] : memref<1xf32, #hivm.address_space<ub>>
        hivm.hir.set_flag[<PIPE_V>, <PIPE_MTE2>, <EVENT_ID3>]
        hivm.hir.wait_flag[<PIPE_V>, <PIPE_MTE2>, <EVENT_ID3>]
        %17 = memref.subview %dt_bias[%v_head_idx] [1] [1] : memref<32xf16, #hivm.address_space<gm>> to memref<1xf16, strided<[1], offset: ?>, #hivm.address_space<gm>>
        hivm.hir.load ins(%17 : memref<1xf16, strided<[1], offset: ?>, #hivm.address_space<gm>>) outs(%scalar_fp16 : memref<1xf16, #hivm.address_space<ub>>)
        hivm.hir.set_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID4>]
        hivm.hir.wait_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID4>]
        hivm.hir.vcast ins(%scalar_fp16 : memref<1xf16, #hivm.address_space<ub>>) outs(%scalar_fp32 : memref<1xf32, #hivm.address_space<ub>>)
        %dt_val = memref.load %scalar_fp32[%c0] : memref<1xf32, #hivm.address_space<ub>>
        %18 = arith.index_cast %seq_start : i32 to index
        %19 = arith.subi %c664, %18 : index
        %20 = arith.cmpi slt, %19, %c1 : index
        %21 = arith.select %20, %c0, %c128 : index
        scf.if %20 {
          %22 = memref.subview %q_buf[0, 0] [1, 128] [1, 1] : memref<2x128xf16, #hivm.address_space<ub>> to memref<128xf16, strided<[1]>, #hivm.address_space<ub>>
          hivm.hir.vbrc ins(%cst : f16) outs(%22 : memref<128xf16, strided<[1]>, #hivm.address_space<ub>>)
        }
        hivm.hir.set_flag[<PIPE_V>, <PIPE_MTE2>, <EVENT_ID0>]
        %23 = arith.minsi %18, %c663 : index
        %24 = memref.subview %query[%23, %k_head_idx, 0] [1, 1, %21] [1, 1, 1] : memref<664x16x128xf16, #hivm.address_space<gm>> to memref<?xf16, strided<[1], offset: ?>, #hivm.address_space<gm>>
        %25 = memref.subview %q_buf[0, 0] [1, %21] [1, 1] : memref<2x128xf16, #hivm.address_space<ub>> to memref<?xf16, strided<[1]>, #hivm.address_space<ub>>
        hivm.hir.wait_flag[<PIPE_V>, <PIPE_MTE2>, <EVENT_ID0>]
        hivm.hir.load ins(%24 : memref<?xf16, strided<[1], offset: ?>, #hivm.address_space<gm>>) outs(%25 : memref<?xf16, strided<[1]>, #hivm.address_space<ub>>)
        scf.if %20 {
          %26 = memref.subview %k_buf[0, 0] [1, 128] [1, 1] : memref<2x128xf16, #hivm.address_space<ub>> to memref<128xf16, strided<[1]>, #hivm.address_space<ub>>
          hivm.hir.vbrc ins(%cst : f16) outs(%26 : memref<128xf16, strided<[1]>, #hivm.address_space<ub>>)
        }
        hivm.hir.set_flag[<PIPE_V>, <PIPE_MTE2>, <EVENT_ID0>]
        %27 = memref.subview %key[%23, %k_head_idx, 0] [1, 1, %21] [1, 1, 1] : memref<664x16x128xf16, #hivm.address_space<gm>> to memref<?xf16, strided<[1], offset: ?>, #hivm.address_space<gm>>
        %28 = memref.subview %k_buf[0, 0] [1, %21] [1, 1] : memref<2x128xf16, #hivm.address_space<ub>> to memref<?xf16, strided<[1]>, #hivm.address_space<ub>>
        hivm.hir.wait_flag[<PIPE_V>, <PIPE_MTE2>, <EVENT_ID0>]
        hivm.hir.load ins(%27 : memref<?xf16, strided<[1], offset: ?>, #hivm.address_space<gm>>) outs(%28 : memref<?xf16, strided<[1]>, #hivm.address_space<ub>>)
        %29 = arith.select %20, %c0, %c64 : index
        scf.if %20 {
          %30 = memref.subview %v_buf[0, 0] [1, 64] [1, 1] : memref<2x64xf16, #hivm.address_space<ub>> to memref<64xf16, strided<[1]>, #hivm.address_space<ub>>
          hivm.hir.vbrc ins(%cst : f16) outs(%30 : memref<64xf16, strided<[1]>, #hivm.address_space<ub>>)
        }
        hivm.hir.set_flag[<PIPE_V>, <PIPE_MTE2>, <EVENT_ID0>]
        %31 = memref.subview %value[%23, %v_head_idx, %v_offset] [1, 1, %29] [1, 1, 1] : memref<664x32x128xf16, #hivm.address_space<gm>> to memref<?xf16, strided<[1], offset: ?>, #hivm.address_space<gm>>
        %32 = memref.subview %v_buf[0, 0] [1, %29] [1, 1] : memref<2x64xf16, #hivm.address_space<ub>> to memref<?xf16, strided<[1]>, #hivm.address_space<ub>>
        hivm.hir.wait_flag[<PIPE_V>, <PIPE_MTE2>, <EVENT_ID0>]
        hivm.hir.load ins(%31 : memref<?xf16, strided<[1], offset: ?>, #hivm.address_space<gm>>) outs(%32 : memref<?xf16, strided<[1]>, #hivm.address_space<ub>>)
        hivm.hir.set_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID6>]
        %33 = arith.index_cast %seq_len : i32 to index
        scf.for %t = %c0 to %33 step %c1 {
          %buf_idx = arith.remui %t, %c2 : index
          %turn2 = arith.index_cast %buf_idx : index to i64
          %alpha_val = hivm.hir.pointer_cast(%c168064_i64) : memref<1xf32, #hivm.address_space<ub>>
          %scalar2_fp16 = hivm.hir.pointer_cast(%c168128_i64) : memref<1xf16, #hivm.address_space<ub>>
          %scalar2_fp32 = hivm.hir.pointer_cast(%c168032_i64) : memref<1xf32, #hivm.address_space<ub>>
          %o_half_buf = hivm.hir.pointer_cast(%c167680_i64) : memref<2x64xf16, #hivm.address_space<ub>>
          %delta_vec = hivm.hir.pointer_cast(%c115200_i64) : memref<64xf32, #hivm.address_space<ub>>
          %pred_vec = hivm.hir.pointer_cast(%c99072_i64) : memref<64xf32, #hivm.address_space<ub>>
          %compute_buffer = hivm.hir.pointer_cast(%c66048_i64) : memref<64x128xf32, #hivm.address_space<ub>>
          %k_broadcasted = hivm.hir.pointer_cast(%c33024_i64) : memref<64x128xf32, #hivm.address_space<ub>>
          %v_f = hivm.hir.pointer_cast(%c115200_i64) : memref<64xf32, #hivm.address_space<ub>>
          %k_f = hivm.hir.pointer_cast(%c32768_i64) : memref<128xf32, #hivm.address_space<ub>>
          %q_f = hivm.hir.pointer_cast(%c166656_i64) : memref<128xf32, #hivm.address_space<ub>>
          %token_idx = arith.addi %18, %t : index
          hivm.hir.wait_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID6>]
          %34 = arith.subi %c664, %token_idx : index
          %35 = arith.cmpi slt, %34, %c1 : index
          %36 = arith.select %35, %c0, %c1 : index
          scf.if %35 {
            hivm.hir.vbrc ins(%cst : f16) outs(%scalar_fp16 : memref<1xf16, #hivm.address_space<ub>>)
          }
          hivm.hir.set_flag[<PIPE_V>, <PIPE_MTE2>, <EVENT_ID0>]
          %37 = arith.minsi %token_idx, %c663 : index
          %38 = memref.subview %a[%37, %v_head_idx] [1, %36] [1, 1] : memref<664x32xf16, #hivm.address_space<gm>> to memref<?xf16, strided<[1], offset: ?>, #hivm.address_space<gm>>
          %39 = memref.subview %scalar_fp16[0] [%36] [1] : memref<1xf16, #hivm.address_space<ub>> to memref<?xf16, strided<[1]>, #hivm.address_space<ub>>
          hivm.hir.wait_flag[<PIPE_V>, <PIPE_MTE2>, <EVENT_ID0>]
          hivm.hir.load ins(%38 : memref<?xf16, strided<[1], offset: ?>, #hivm.address_space<gm>>) outs(%39 : memref<?xf16, strided<[1]>, #hivm.address_space<ub>>)
          scf.if %35 {
            hivm.hir.vbrc ins(%cst : f16) outs(%scalar2_fp16 : memref<1xf16, #hivm.address_space<ub>>)
          }
          hivm.hir.set_flag[<PIPE_V>, <PIPE_MTE2>, <EVENT_ID0>]
          %40 = memref.subview %beta[%37, %v_head_idx] [1, %36] [1, 1] : memref<664x32xf16, #hivm.address_space<gm>> to memref<?xf16, strided<[1], offset: ?>, #hivm.address_space<gm>>
          %41 = memref.subview %scalar2_fp16[0] [%36] [1] : memref<1xf16, #hivm.address_space<ub>> to memref<?xf16, strided<[1]>, #hivm.address_space<ub>>
          hivm.hir.wait_flag[<PIPE_V>, <PIPE_MTE2>, <EVENT_ID0>]
          hivm.hir.load ins(%40 : memref<?xf16, strided<[1], offset: ?>, #hivm.address_space<gm>>) outs(%41 : memref<?xf16, strided<[1]>, #hivm.address_space<ub>>)
          hivm.hir.set_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID5>]
          hivm.hir.wait_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID5>]
          hivm.hir.vcast ins(%scalar_fp16 : memref<1xf16, #hivm.address_space<ub>>) outs(%scalar_fp32 : memref<1xf32, #hivm.address_space<ub>>)
          hivm.hir.vcast ins(%scalar2_fp16 : memref<1xf16, #hivm.address_space<ub>>) outs(%scalar2_fp32 : memref<1xf32, #hivm.address_space<ub>>)
          %a_val = memref.load %scalar_fp32[%c0] : memref<1xf32, #hivm.address_space<ub>>
          %b_val = memref.load %scalar2_fp32[%c0] : memref<1xf32, #hivm.address_space<ub>>
          %x = arith.addf %a_val, %dt_val : f32
          %cst_2 = arith.constant 1.000000e+00 : f32
          %beta_x = arith.mulf %x, %cst_2 : f32
          %cst_3 = arith.constant 2.000000e+01 : f32
          %42 = arith.cmpf ogt, %beta_x, %cst_3 : f32
          scf.if %42 {
            memref.store %x, %softplus_val[%c0] : memref<1xf32, #hivm.address_space<ub>>
          } else {
            memref.store %beta_x, %scalar_fp32[%c0] : memref<1xf32, #hivm.address_space<ub>>
            hivm.hir.vexp ins(%scalar_fp32 : memref<1xf32, #hivm.address_space<ub>>) outs(%alpha_val : memref<1xf32, #hivm.address_space<ub>>)
            hivm.hir.vadd ins(%alpha_val, %cst_2 : memref<1xf32, #hivm.address_space<ub>>, f32) outs(%alpha_val : memref<1xf32, #hivm.address_space<ub>>)
            hivm.hir.vln ins(%alpha_val : memref<1xf32, #hivm.address_space<ub>>) outs(%alpha_val : memref<1xf32, #hivm.address_space<ub>>)
            %43 = memref.load %alpha_val[%c0] : memref<1xf32, #hivm.address_space<ub>>
            %44 = arith.mulf %43, %cst_2 : f32
            memref.store %44, %softplus_val[%c0] : memref<1xf32, #hivm.address_space<ub>>
          }
          %45 = arith.negf %exp_A : f32
          %46 = memref.load %softplus_val[%c0] : memref<1xf32, #hivm.address_space<ub>>
          %47 = arith.mulf %45, %46 : f32
          memref.store %47, %scalar_fp32[%c0] : memref<1xf32, #hivm.address_space<ub>>
          hivm.hir.vexp ins(%scalar_fp32 : memref<1xf32, #hivm.address_space<ub>>) outs(%alpha_val : memref<1xf32, #hivm.address_space<ub>>)
          %48 = arith.negf %b_val : f32
          memref.store %48, %scalar_fp32[%c0] : memref<1xf32, #hivm.address_space<ub>>
          hivm.hir.vexp ins(%scalar_fp32 : memref<1xf32, #hivm.address_space<ub>>) outs(%scalar_fp32 : memref<1xf32, #hivm.address_space<ub>>)
          hivm.hir.vadd ins(%scalar_fp32, %cst_2 : memref<1xf32, #hivm.address_space<ub>>, f32) outs(%scalar_fp32 : memref<1xf32, #hivm.address_space<ub>>)
          hivm.hir.vrec ins(%scalar_fp32 : memref<1xf32, #hivm.address_space<ub>>) outs(%scalar_fp32 : memref<1xf32, #hivm.address_space<ub>>)
          %beta_gate_scalar = memref.load %scalar_fp32[%c0] : memref<1xf32, #hivm.address_space<ub>>
          %49 = memref.subview %q_buf[%buf_idx, 0] [1, 128] [1, 1] : memref<2x128xf16, #hivm.address_space<ub>> to memref<128xf16, strided<[1], offset: ?>, #hivm.address_space<ub>>
          hivm.hir.vcast ins(%49 : memref<128xf16, strided<[1], offset: ?>, #hivm.address_space<ub>>) outs(%q_f : memref<128xf32, #hivm.address_space<ub>>)
          %50 = memref.subview %k_buf[%buf_idx, 0] [1, 128] [1, 1] : memref<2x128xf16, #hivm.address_space<ub>> to memref<128xf16, strided<[1], offset: ?>, #hivm.address_space<ub>>
          hivm.hir.vcast ins(%50 : memref<128xf16, strided<[1], offset: ?>, #hivm.address_space<ub>>) outs(%k_f : memref<128xf32, #hivm.address_space<ub>>)
          %51 = memref.subview %v_buf[%buf_idx, 0] [1, 64] [1, 1] : memref<2x64xf16, #hivm.address_space<ub>> to memref<64xf16, strided<[1], offset: ?>, #hivm.address_space<ub>>
          hivm.hir.vcast ins(%51 : memref<64xf16, strided<[1], offset: ?>, #hivm.address_space<ub>>) outs(%v_f : memref<64xf32, #hivm.address_space<ub>>)
          %52 = arith.addi %t, %c1 : index
          %53 = arith.cmpi slt, %52, %33 : index
          scf.if %53 {
            %next_token_idx = arith.addi %token_idx, %c1 : index
            %next_buf_idx = arith.remui %52, %c2 : index
            %54 = arith.subi %c664, %next_token_idx : index
            %55 = arith.cmpi slt, %54, %c1 : index
            %56 = arith.select %55, %c0, %c128 : index
            scf.if %55 {
              %57 = memref.subview %q_buf[%next_buf_idx, 0] [1, 128] [1, 1] : memref<2x128xf16, #hivm.address_space<ub>> to memref<128xf16, strided<[1], offset: ?>, #hivm.address_space<ub>>
              hivm.hir.vbrc ins(%cst : f16) outs(%57 : memref<128xf16, strided<[1], offset: ?>, #hivm.address_space<ub>>)
            }
            hivm.hir.set_flag[<PIPE_V>, <PIPE_MTE2>, %turn2]
            %58 = arith.minsi %next_token_idx, %c663 : index
            %59 = memref.subview %query[%58, %k_head_idx, 0] [1, 1, %56] [1, 1, 1] : memref<664x16x128xf16, #hivm.address_space<gm>> to memref<?xf16, strided<[1], offset: ?>, #hivm.address_space<gm>>
            %60 = memref.subview %q_buf[%next_buf_idx, 0] [1, %56] [1, 1] : memref<2x128xf16, #hivm.address_space<ub>> to memref<?xf16, strided<[1], offset: ?>, #hivm.address_space<ub>>
            hivm.hir.wait_flag[<PIPE_V>, <PIPE_MTE2>, %turn2]
            hivm.hir.load ins(%59 : memref<?xf16, strided<[1], offset: ?>, #hivm.address_space<gm>>) outs(%60 : memref<?xf16, strided<[1], offset: ?>, #hivm.address_space<ub>>)
            scf.if %55 {
              %61 = memref.subview %k_buf[%next_buf_idx, 0] [1, 128] [1, 1] : memref<2x128xf16, #hivm.address_space<ub>> to memref<128xf16, strided<[1], offset: ?>, #hivm.address_space<ub>>
              hivm.hir.vbrc ins(%cst : f16) outs(%61 : memref<128xf16, strided<[1], offset: ?>, #hivm.address_space<ub>>)
            }
            hivm.hir.set_flag[<PIPE_V>, <PIPE_MTE2>, %turn2]
            %62 = memref.subview %key[%58, %k_head_idx, 0] [1, 1, %56] [1, 1, 1] : memref<664x16x128xf16, #hivm.address_space<gm>> to memref<?xf16, strided<[1], offset: ?>, #hivm.address_space<gm>>
            %63 = memref.subview %k_buf[%next_buf_idx, 0] [1, %56] [1, 1] : memref<2x128xf16, #hivm.address_space<ub>> to memref<?xf16, strided<[1], offset: ?>, #hivm.address_space<ub>>
            hivm.hir.wait_flag[<PIPE_V>, <PIPE_MTE2>, %turn2]
            hivm.hir.load ins(%62 : memref<?xf16, strided<[1], offset: ?>, #hivm.address_space<gm>>) outs(%63 : memref<?xf16, strided<[1], offset: ?>, #hivm.address_space<ub>>)
            %64 = arith.select %55, %c0, %c64 : index
            scf.if %55 {
              %65 = memref.subview %v_buf[%next_buf_idx, 0] [1, 64] [1, 1] : memref<2x64xf16, #hivm.address_space<ub>> to memref<64xf16, strided<[1], offset: ?>, #hivm.address_space<ub>>
              hivm.hir.vbrc ins(%cst : f16) outs(%65 : memref<64xf16, strided<[1], offset: ?>, #hivm.address_space<ub>>)
            }
            hivm.hir.set_flag[<PIPE_V>, <PIPE_MTE2>, %turn2]
            %66 = memref.subview %value[%58, %v_head_idx, %v_offset] [1, 1, %64] [1, 1, 1] : memref<664x32x128xf16, #hivm.address_space<gm>> to memref<?xf16, strided<[1], offset: ?>, #hivm.address_space<gm>>
            %67 = memref.subview %v_buf[%next_buf_idx, 0] [1, %64] [1, 1] : memref<2x64xf16, #hivm.address_space<ub>> to memref<?xf16, strided<[1], offset: ?>, #hivm.address_space<ub>>
            hivm.hir.wait_flag[<PIPE_V>, <PIPE_MTE2>, %turn2]
            hivm.hir.load ins(%66 : memref<?xf16, strided<[1], offset: ?>, #hivm.address_space<gm>>) outs(%67 : memref<?xf16, strided<[1], offset: ?>, #hivm.address_space<ub>>)
            hivm.hir.set_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID6>]
          }
          %68 = memref.subview %norm_sq[0, 0] [1, 128] [1, 1] : memref<1x128xf32, #hivm.address_space<ub>> to memref<128xf32, strided<[1]>, #hivm.address_space<ub>>
          hivm.hir.vmul ins(%q_f, %q_f : memref<128xf32, #hivm.address_space<ub>>, memref<128xf32, #hivm.address_space<ub>>) outs(%68 : memref<128xf32, strided<[1]>, #hivm.address_space<ub>>)
          %69 = memref.reinterpret_cast %norm_val to offset: [0], sizes: [1, 1], strides: [1, 1] : memref<1xf32, #hivm.address_space<ub>> to memref<1x1xf32, strided<[1, 1]>, #hivm.address_space<ub>>
          %scratch_vreduce = hivm.hir.pointer_cast(%c33280_i64) : memref<64xf32, #hivm.address_space<ub>>
          hivm.hir.vreduce <sum> ins(%norm_sq : memref<1x128xf32, #hivm.address_space<ub>>) outs(%69 : memref<1x1xf32, strided<[1, 1]>, #hivm.address_space<ub>>) temp_buffer(%scratch_vreduce : memref<64xf32, #hivm.address_space<ub>>) reduce_dims = [1]
          %cst_4 = arith.constant 1.000000e-12 : f32
          hivm.hir.vadd ins(%norm_val, %cst_4 : memref<1xf32, #hivm.address_space<ub>>, f32) outs(%norm_val : memref<1xf32, #hivm.address_space<ub>>)
          hivm.hir.vrsqrt ins(%norm_val : memref<1xf32, #hivm.address_space<ub>>) outs(%norm_val : memref<1xf32, #hivm.address_space<ub>>)
          %norm_scalar = memref.load %norm_val[%c0] : memref<1xf32, #hivm.address_space<ub>>
          hivm.hir.vmul ins(%q_f, %norm_scalar : memref<128xf32, #hivm.address_space<ub>>, f32) outs(%q_f : memref<128xf32, #hivm.address_space<ub>>)
          hivm.hir.vmul ins(%k_f, %k_f : memref<128xf32, #hivm.address_space<ub>>, memref<128xf32, #hivm.address_space<ub>>) outs(%68 : memref<128xf32, strided<[1]>, #hivm.address_space<ub>>)
          hivm.hir.vreduce <sum> ins(%norm_sq : memref<1x128xf32, #hivm.address_space<ub>>) outs(%69 : memref<1x1xf32, strided<[1, 1]>, #hivm.address_space<ub>>) temp_buffer(%scratch_vreduce : memref<64xf32, #hivm.address_space<ub>>) reduce_dims = [1]
          hivm.hir.vadd ins(%norm_val, %cst_4 : memref<1xf32, #hivm.address_space<ub>>, f32) outs(%norm_val : memref<1xf32, #hivm.address_space<ub>>)
          hivm.hir.vrsqrt ins(%norm_val : memref<1xf32, #hivm.address_space<ub>>) outs(%norm_val : memref<1xf32, #hivm.address_space<ub>>)
          %norm_scalar_1 = memref.load %norm_val[%c0] : memref<1xf32, #hivm.address_space<ub>>
          hivm.hir.vmul ins(%k_f, %norm_scalar_1 : memref<128xf32, #hivm.address_space<ub>>, f32) outs(%k_f : memref<128xf32, #hivm.address_space<ub>>)
          %cst_5 = arith.constant 0.0883883461 : f32
          hivm.hir.vmul ins(%q_f, %cst_5 : memref<128xf32, #hivm.address_space<ub>>, f32) outs(%q_f : memref<128xf32, #hivm.address_space<ub>>)
          %70 = memref.load %alpha_val[%c0] : memref<1xf32, #hivm.address_space<ub>>
          hivm.hir.vmul ins(%h_vec, %70 : memref<64x128xf32, #hivm.address_space<ub>>, f32) outs(%h_vec : memref<64x128xf32, #hivm.address_space<ub>>)
          %71 = memref.subview %k_1d[0, 0] [1, 128] [1, 1] : memref<1x128xf32, #hivm.address_space<ub>> to memref<128xf32, strided<[1]>, #hivm.address_space<ub>>
          hivm.hir.copy ins(%k_f : memref<128xf32, #hivm.address_space<ub>>) outs(%71 : memref<128xf32, strided<[1]>, #hivm.address_space<ub>>)
          hivm.hir.vbrc ins(%k_1d : memref<1x128xf32, #hivm.address_space<ub>>) outs(%k_broadcasted : memref<64x128xf32, #hivm.address_space<ub>>) broadcast_dims = [0]
          hivm.hir.vmul ins(%h_vec, %k_broadcasted : memref<64x128xf32, #hivm.address_space<ub>>, memref<64x128xf32, #hivm.address_space<ub>>) outs(%compute_buffer : memref<64x128xf32, #hivm.address_space<ub>>)
          %72 = memref.reinterpret_cast %pred_1d to offset: [0], sizes: [64, 1], strides: [1, 1] : memref<64x1xf32, #hivm.address_space<ub>> to memref<64x1xf32, strided<[1, 1]>, #hivm.address_space<ub>>
          %scratch_vreduce_1 = hivm.hir.pointer_cast(%c98816_i64) : memref<4096xf32, #hivm.address_space<ub>>
          hivm.hir.vreduce <sum> ins(%compute_buffer : memref<64x128xf32, #hivm.address_space<ub>>) outs(%72 : memref<64x1xf32, strided<[1, 1]>, #hivm.address_space<ub>>) temp_buffer(%scratch_vreduce_1 : memref<4096xf32, #hivm.address_space<ub>>) reduce_dims = [1]
          %73 = memref.subview %pred_1d[0, 0] [64, 1] [1, 1] : memref<64x1xf32, #hivm.address_space<ub>> to memref<64xf32, strided<[1]>, #hivm.address_space<ub>>
          hivm.hir.copy ins(%73 : memref<64xf32, strided<[1]>, #hivm.address_space<ub>>) outs(%pred_vec : memref<64xf32, #hivm.address_space<ub>>)
          hivm.hir.vsub ins(%v_f, %pred_vec : memref<64xf32, #hivm.address_space<ub>>, memref<64xf32, #hivm.address_space<ub>>) outs(%delta_vec : memref<64xf32, #hivm.address_space<ub>>)
          hivm.hir.vmul ins(%delta_vec, %beta_gate_scalar : memref<64xf32, #hivm.address_space<ub>>, f32) outs(%delta_vec : memref<64xf32, #hivm.address_space<ub>>)
          %74 = memref.subview %delta_1d[0, 0] [64, 1] [1, 1] : memref<64x1xf32, #hivm.address_space<ub>> to memref<64xf32, strided<[1]>, #hivm.address_space<ub>>
          hivm.hir.copy ins(%delta_vec : memref<64xf32, #hivm.address_space<ub>>) outs(%74 : memref<64xf32, strided<[1]>, #hivm.address_space<ub>>)
          %scratch_vbrc = hivm.hir.pointer_cast(%c98816_i64) : memref<512xf32, #hivm.address_space<ub>>
          hivm.hir.vbrc ins(%delta_1d : memref<64x1xf32, #hivm.address_space<ub>>) outs(%compute_buffer : memref<64x128xf32, #hivm.address_space<ub>>) temp_buffer(%scratch_vbrc : memref<512xf32, #hivm.address_space<ub>>) broadcast_dims = [1]
          %mul_add_dst_t = hivm.hir.pointer_cast(%c99072_i64) : memref<64x128xf32, #hivm.address_space<ub>>
          hivm.hir.vmul ins(%k_broadcasted, %compute_buffer : memref<64x128xf32, #hivm.address_space<ub>>, memref<64x128xf32, #hivm.address_space<ub>>) outs(%mul_add_dst_t : memref<64x128xf32, #hivm.address_space<ub>>)
          hivm.hir.pipe_barrier[<PIPE_V>]
          hivm.hir.vadd ins(%h_vec, %mul_add_dst_t : memref<64x128xf32, #hivm.address_space<ub>>, memref<64x128xf32, #hivm.address_space<ub>>) outs(%h_vec : memref<64x128xf32, #hivm.address_space<ub>>)
          hivm.hir.copy ins(%q_f : memref<128xf32, #hivm.address_space<ub>>) outs(%71 : memref<128xf32, strided<[1]>, #hivm.address_space<ub>>)
          hivm.hir.vbrc ins(%k_1d : memref<1x128xf32, #hivm.address_space<ub>>) outs(%k_broadcasted : memref<64x128xf32, #hivm.address_space<ub>>) broadcast_dims = [0]
          hivm.hir.vmul ins(%h_vec, %k_broadcasted : memref<64x128xf32, #hivm.address_space<ub>>, memref<64x128xf32, #hivm.address_space<ub>>) outs(%compute_buffer : memref<64x128xf32, #hivm.address_space<ub>>)
          %scratch_vreduce_2 = hivm.hir.pointer_cast(%c32768_i64) : memref<4096xf32, #hivm.address_space<ub>>
          hivm.hir.vreduce <sum> ins(%compute_buffer : memref<64x128xf32, #hivm.address_space<ub>>) outs(%72 : memref<64x1xf32, strided<[1, 1]>, #hivm.address_space<ub>>) temp_buffer(%scratch_vreduce_2 : memref<4096xf32, #hivm.address_space<ub>>) reduce_dims = [1]
          %75 = memref.subview %o_half_buf[%buf_idx, 0] [1, 64] [1, 1] : memref<2x64xf16, #hivm.address_space<ub>> to memref<64xf16, strided<[1], offset: ?>, #hivm.address_space<ub>>
          hivm.hir.vcast ins(%73 : memref<64xf32, strided<[1]>, #hivm.address_space<ub>>) outs(%75 : memref<64xf16, strided<[1], offset: ?>, #hivm.address_space<ub>>)
          hivm.hir.set_flag[<PIPE_V>, <PIPE_MTE3>, <EVENT_ID0>]
          hivm.hir.wait_flag[<PIPE_V>, <PIPE_MTE3>, <EVENT_ID0>]
          %76 = arith.select %35, %c0, %c64 : index
          %77 = memref.subview %o_half_buf[%buf_idx, 0] [1, %76] [1, 1] : memref<2x64xf16, #hivm.address_space<ub>> to memref<?xf16, strided<[1], offset: ?>, #hivm.address_space<ub>>
          %78 = memref.subview %out[%37, %v_head_idx, %v_offset] [1, 1, %76] [1, 1, 1] : memref<664x32x128xf16, #hivm.address_space<gm>> to memref<?xf16, strided<[1], offset: ?>, #hivm.address_space<gm>>
          hivm.hir.store ins(%77 : memref<?xf16, strided<[1], offset: ?>, #hivm.address_space<ub>>) outs(%78 : memref<?xf16, strided<[1], offset: ?>, #hivm.address_space<gm>>)
        }
        hivm.hir.vcast ins(%h_vec : memref<64x128xf32, #hivm.address_space<ub>>) outs(%h_store_vec : memref<64x128xf16, #hivm.address_space<ub>>)
        hivm.hir.set_flag[<PIPE_V>, <PIPE_MTE3>, <EVENT_ID5>]
        hivm.hir.wait_flag[<PIPE_V>, <PIPE_MTE3>, <EVENT_ID5>]
        %79 = arith.subi %c100, %seq_idx : index
        %80 = arith.cmpi slt, %79, %c1 : index
        %81 = arith.select %80, %c0, %c64 : index
        %82 = arith.minsi %seq_idx, %c99 : index
        %83 = memref.subview %h_store_vec[0, 0] [%81, 128] [1, 1] : memref<64x128xf16, #hivm.address_space<ub>> to memref<?x128xf16, strided<[128, 1]>, #hivm.address_space<ub>>
        %84 = memref.subview %final_state[%82, %v_head_idx, %v_offset, 0] [1, 1, %81, 128] [1, 1, 1, 1] : memref<100x32x128x128xf16, #hivm.address_space<gm>> to memref<?x128xf16, strided<[128, 1], offset: ?>, #hivm.address_space<gm>>
        hivm.hir.store ins(%83 : memref<?x128xf16, strided<[128, 1]>, #hivm.address_space<ub>>) outs(%84 : memref<?x128xf16, strided<[128, 1], offset: ?>, #hivm.address_space<gm>>)
      }
    }
    hivm.hir.pipe_barrier[<PIPE_ALL>]
    return
  }
}
