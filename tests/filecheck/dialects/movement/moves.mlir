// RUN: tilelang-npu opt %s | filecheck %s
#gm = #hivm.address_space<gm>
#l1 = #hivm.address_space<cbuf>
#ub = #hivm.address_space<ub>
// CHECK-LABEL: func.func @moves
// CHECK-NEXT:    hivm.hir.load ins(%x : memref<2x7xf16, #hivm.address_space<gm>>) outs(%y : memref<2x16xf16, #hivm.address_space<ub>>) pad_mode = <PadValue> pad_value = %v : f16 left_padding_num = %n : index right_padding_num = %n : index eviction_policy = <EvictFirst>
// CHECK-NEXT:    hivm.hir.store ins(%y : memref<2x16xf16, #hivm.address_space<ub>>) outs(%z : memref<2x16xf16, #hivm.address_space<gm>>) atomic = <add>
// CHECK-NEXT:    hivm.hir.copy ins(%y : memref<2x16xf16, #hivm.address_space<ub>>) outs(%y : memref<2x16xf16, #hivm.address_space<ub>>)
// CHECK-NEXT:    hivm.hir.nd2nz {dst_continuous} ins(%z : memref<2x16xf16, #hivm.address_space<gm>>) outs(%w : memref<1x1x16x16xf16, #hivm.address_space<cbuf>>) init_out_buffer = true pad_value = %v : f16
// CHECK-NEXT:    %{{.*}} = hivm.hir.load ins(%t : tensor<16xf16>) outs(%t : tensor<16xf16>) init_out_buffer = false may_implicit_transpose_with_last_axis = false core_type = <VECTOR> -> tensor<16xf16>
func.func @moves(%x: memref<2x7xf16, #gm>, %y: memref<2x16xf16, #ub>, %z: memref<2x16xf16, #gm>, %w: memref<1x1x16x16xf16, #l1>,
                 %t: tensor<16xf16>, %v: f16, %n: index) {
  hivm.hir.load ins(%x : memref<2x7xf16, #gm>) outs(%y : memref<2x16xf16, #ub>) pad_mode = <PadValue> pad_value = %v : f16 left_padding_num = %n : index right_padding_num = %n : index eviction_policy = <EvictFirst>
  hivm.hir.store ins(%y : memref<2x16xf16, #ub>) outs(%z : memref<2x16xf16, #gm>) atomic = <add>
  hivm.hir.copy ins(%y : memref<2x16xf16, #ub>) outs(%y : memref<2x16xf16, #ub>)
  hivm.hir.nd2nz {dst_continuous} ins(%z : memref<2x16xf16, #gm>) outs(%w : memref<1x1x16x16xf16, #l1>) init_out_buffer = true pad_value = %v : f16
  %0 = hivm.hir.load ins(%t : tensor<16xf16>) outs(%t : tensor<16xf16>) init_out_buffer = false may_implicit_transpose_with_last_axis = false core_type = <VECTOR> -> tensor<16xf16>
  return
}
