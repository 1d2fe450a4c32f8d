// RUN: tilelang-npu opt %s -p plan-workspace --split-input-file --verify-diagnostics | filecheck %s
// The module states the size of all workspaces and the offset of this one: nothing is added.
// CHECK-COUNT-1: func.func @k_infer_workspace_shape_function
// CHECK-NOT:     func.func @k_infer_workspace_shape_function
// CHECK:         memref.view %ws[%c0][]
func.func @k_infer_workspace_shape_function() -> index attributes {hacc.function_kind = #hacc.function_kind<HOST>, hacc.host_func_type = #hacc.host_func_type<infer_workspace_shape_function>} {
  %bytes = arith.constant 4096 : index
  return %bytes : index
}
func.func @k(%ffts: i64 {hacc.arg_type = #hacc.arg_type<ffts_base_address>}, %ws: memref<?xi8, #hivm.address_space<gm>> {hacc.arg_type = #hacc.arg_type<workspace>}) attributes {hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>, hivm.func_core_type = #hivm.func_core_type<MIX>} {
  %c0 = arith.constant 0 : index
  %mine = memref.view %ws[%c0][] : memref<?xi8, #hivm.address_space<gm>> to memref<32x32xf32, #hivm.address_space<gm>>
  return
}
// -----
// If only some workspaces have an offset, the free bytes are unknown.
func.func @k_infer_workspace_shape_function() -> index attributes {hacc.function_kind = #hacc.function_kind<HOST>, hacc.host_func_type = #hacc.host_func_type<infer_workspace_shape_function>} {
  %bytes = arith.constant 4096 : index
  return %bytes : index
}
func.func @k(%ws: memref<?xi8, #hivm.address_space<gm>> {hacc.arg_type = #hacc.arg_type<workspace>}) attributes {hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>, hivm.func_core_type = #hivm.func_core_type<AIV>} {
  // expected-error @below {{this workspace has no offset, but the module already states the size of all workspaces}}
  %more = memref_ext.alloc_workspace() : memref<32x32xf32, #hivm.address_space<gm>>
  return
}
