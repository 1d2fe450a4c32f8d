// RUN: tilelang-npu opt %s -p "complete-kernel{chip=\"910B3\"}" | filecheck %s
// CHECK:      module attributes {hacc.target = #hacc.target<"Ascend910B3">, hivm.module_core_type = #hivm.module_core_type<AIV>}
// CHECK:      func.func @k_infer_task_type_function() -> i8
// CHECK-NEXT:   arith.constant 10 : i8
// CHECK:      func.func @k()
// CHECK-NEXT:   hivm.hir.set_mask_norm
// CHECK-NEXT:   hivm.hir.pipe_barrier[<PIPE_ALL>]
// CHECK-NEXT:   return
func.func @k() attributes {hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>, hivm.func_core_type = #hivm.func_core_type<AIV>} {
  return
}
