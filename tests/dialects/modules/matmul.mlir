// One 128x256x128 product without explicit synchronisation: the toolchain places buffers and events.
#gm = #hivm.address_space<gm>
#l1 = #hivm.address_space<cbuf>
#l0c = #hivm.address_space<cc>
module attributes {dlti.target_system_spec = #dlti.target_system_spec<"NPU" : #hacc.target_device_spec<#dlti.dl_entry<"AI_CORE_COUNT", 20 : i32>, #dlti.dl_entry<"UB_SIZE", 1572864 : i32>>>, hacc.target = #hacc.target<"Ascend910B1">} {
  func.func @product(%a: memref<128x128xf16, #gm>, %b: memref<128x256xf16, #gm>, %c: memref<128x256xf16, #gm>, %clear: i1)
      attributes {hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>, hivm.func_core_type = #hivm.func_core_type<AIC>} {
    %m = arith.constant 128 : index
    %n = arith.constant 256 : index
    %k = arith.constant 128 : index
    %zero = arith.constant 0.000000e+00 : f16
    %l1a = memref.alloc() : memref<8x8x16x16xf16, #l1>
    %l1b = memref.alloc() {alignment = 64 : i64} : memref<16x8x16x16xf16, #l1>
    %acc = memref.alloc() : memref<16x8x16x16xf32, #l0c>
    annotation.mark %l1a {hivm.multi_buffer = 2 : i32} : memref<8x8x16x16xf16, #l1>
    hivm.hir.nd2nz {dst_continuous} ins(%a : memref<128x128xf16, #gm>) outs(%l1a : memref<8x8x16x16xf16, #l1>) init_out_buffer = true pad_value = %zero : f16 init_condition = %clear : i1
    hivm.hir.nd2nz {dst_continuous} ins(%b : memref<128x256xf16, #gm>) outs(%l1b : memref<16x8x16x16xf16, #l1>)
    %init = arith.constant true
    hivm.hir.mmadL1 {enable_HF32} ins(%l1a, %l1b, %init, %m, %k, %n : memref<8x8x16x16xf16, #l1>, memref<16x8x16x16xf16, #l1>, i1, index, index, index) outs(%acc : memref<16x8x16x16xf32, #l0c>)
    hivm.hir.fixpipe {dma_mode = #hivm.dma_mode<nz2nd>, pre_quant = #hivm.fixpipe_pre_quant_mode<F322F16>, pre_relu = #hivm.fixpipe_pre_relu_mode<NORMAL_RELU>} ins(%acc : memref<16x8x16x16xf32, #l0c>) outs(%c : memref<128x256xf16, #gm>)
    return
  }
}
