// RUN: tilelang-npu opt %s | filecheck %s
// CHECK-LABEL: func.func @custom
// CHECK-NEXT:    hivm.hir.custom {hivm.pipe = #hivm.pipe<PIPE_MTE1>, hivm.tcore_type = #hivm.tcore_type<CUBE>, symbol = "my_load"} "my_load" ins(%a, %n : memref<8xf16, #hivm.address_space<cbuf>>, i64) outs(%b : memref<8xf16, #hivm.address_space<ca>>) tmps(%a : memref<8xf16, #hivm.address_space<cbuf>>)
// CHECK-NEXT:    %{{.*}} = hivm.hir.custom "__builtin_gather_load" ins(%t : tensor<8xf32> {inplace_outs = 0 : i32}) outs(%t : tensor<8xf32>) -> tensor<8xf32>
// CHECK-NEXT:    hivm.hir.custom_macro {hivm.pipe_in = #hivm.pipe<PIPE_MTE2>, hivm.pipe_out = #hivm.pipe<PIPE_V>, hivm.tcore_type = #hivm.tcore_type<VECTOR>, symbol = "m", sync_event_slots = [#hivm.sync_event_slot<#hivm.pipe<PIPE_MTE2>, #hivm.pipe<PIPE_V>, wait, <EVENT_ID2>>]} "m" ins(%n : i64) sync_related_args(%n : i64)
func.func @custom(%a: memref<8xf16, #hivm.address_space<cbuf>>, %b: memref<8xf16, #hivm.address_space<ca>>, %n: i64, %t: tensor<8xf32>) {
  hivm.hir.custom {symbol = "my_load", hivm.pipe = #hivm.pipe<PIPE_MTE1>, hivm.tcore_type = #hivm.tcore_type<CUBE>} "my_load" ins(%a, %n : memref<8xf16, #hivm.address_space<cbuf>>, i64) outs(%b : memref<8xf16, #hivm.address_space<ca>>) tmps(%a : memref<8xf16, #hivm.address_space<cbuf>>)
  %0 = hivm.hir.custom "__builtin_gather_load" ins(%t : tensor<8xf32> {inplace_outs = 0 : i32}) outs(%t : tensor<8xf32>) -> tensor<8xf32>
  hivm.hir.custom_macro {symbol = "m", hivm.pipe_in = #hivm.pipe<PIPE_MTE2>, hivm.pipe_out = #hivm.pipe<PIPE_V>, hivm.tcore_type = #hivm.tcore_type<VECTOR>, sync_event_slots = [#hivm.sync_event_slot<#hivm.pipe<PIPE_MTE2>, #hivm.pipe<PIPE_V>, wait, <EVENT_ID2>>]} "m" ins(%n : i64) sync_related_args(%n : i64)
  return
}
