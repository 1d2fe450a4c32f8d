// RUN: tilelang-npu opt %s --print-op-generic | tilelang-npu opt - | filecheck %s
// RUN: tilelang-npu opt %s --print-op-generic | filecheck %s --check-prefix=GENERIC
// CHECK:      module attributes {hacc.target = #hacc.target<"Ascend910B3">} {
// CHECK-NEXT:   func.func @k(%ws: memref<?xi8> {hacc.arg_type = #hacc.arg_type<workspace>}) attributes {hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>, hivm.func_core_type = #hivm.func_core_type<AIV>} {
// CHECK-NEXT:     %c = arith.constant 8 : index
// CHECK-NEXT:     %m = memref_ext.alloc_workspace(%c) from %ws offset = [%c] : from memref<?xi8> to memref<?xf32>
// CHECK-NEXT:     annotation.mark %m {hivm.multi_buffer = 2 : i32} : memref<?xf32>
// CHECK-NEXT:     scope.scope : () -> () {
// CHECK-NEXT:       hivm.hir.load ins(%m : memref<?xf32>) outs(%m : memref<?xf32>)
// CHECK-NEXT:       scope.return
// CHECK-NEXT:     } {no_inline}
// GENERIC:      "memref_ext.alloc_workspace"(%ws, %c, %c) <{operandSegmentSizes = array<i32: 1, 1, 1>}> : (memref<?xi8>, index, index) -> memref<?xf32>
// GENERIC-NEXT: "annotation.mark"(%m) <{effects = ["write"]}> {hivm.multi_buffer = 2 : i32} : (memref<?xf32>) -> ()
// GENERIC-NEXT: "scope.scope"() <{no_inline}> ({
// GENERIC-NEXT:   "hivm.hir.load"(%m, %m) <{{{.*}}operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0>{{.*}}}> : (memref<?xf32>, memref<?xf32>) -> ()
module attributes {hacc.target = #hacc.target<"Ascend910B3">} {
  func.func @k(%ws: memref<?xi8> {hacc.arg_type = #hacc.arg_type<workspace>}) attributes {hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>, hivm.func_core_type = #hivm.func_core_type<AIV>} {
    %c = arith.constant 8 : index
    %m = memref_ext.alloc_workspace(%c) from %ws offset = [%c] : from memref<?xi8> to memref<?xf32>
    annotation.mark %m {hivm.multi_buffer = 2 : i32} : memref<?xf32>
    scope.scope : () -> () {
      hivm.hir.load ins(%m : memref<?xf32>) outs(%m : memref<?xf32>)
    } {no_inline}
    return
  }
}
