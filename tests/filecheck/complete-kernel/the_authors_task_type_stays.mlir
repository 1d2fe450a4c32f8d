// RUN: tilelang-npu opt %s -p complete-kernel | filecheck %s
// The module already has the function that returns the task type to the host; it stays.
// CHECK:      func.func @k_infer_task_type_function() -> i8
// CHECK-NEXT:   arith.constant 20 : i8
// CHECK-NOT:  func.func @k_infer_task_type_function
func.func @k_infer_task_type_function() -> i8 attributes {hacc.function_kind = #hacc.function_kind<HOST>, hacc.host_func_type = #hacc.host_func_type<infer_task_type_function>} {
  %cube = arith.constant 20 : i8
  return %cube : i8
}
func.func @k() attributes {hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>, hivm.func_core_type = #hivm.func_core_type<AIC>} {
  return
}
