// RUN: tilelang-npu opt %s -p insert-sync | filecheck %s
// The scalar unit waits for the second load and issues all later instructions, so the Vector unit needs no event for the
// first load. It needs one if the scalar unit reads data that was loaded earlier.
// CHECK-LABEL: @behind
// CHECK-NOT:     hivm.hir.set_flag[<PIPE_MTE2>, <PIPE_V>
// CHECK-LABEL: @before
// CHECK:         hivm.hir.wait_flag[<PIPE_MTE2>, <PIPE_V>
// CHECK-NEXT:    hivm.hir.vmul
func.func @behind(%X: memref<64xf32, #hivm.address_space<gm>>) attributes {hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>, hivm.func_core_type = #hivm.func_core_type<AIV>} {
  %c0 = arith.constant 0 : index
  %p0 = arith.constant 0 : i64
  %p1 = arith.constant 256 : i64
  %a = hivm.hir.pointer_cast(%p0) : memref<64xf32, #hivm.address_space<ub>>
  %b = hivm.hir.pointer_cast(%p1) : memref<64xf32, #hivm.address_space<ub>>
  hivm.hir.load ins(%X : memref<64xf32, #hivm.address_space<gm>>) outs(%a : memref<64xf32, #hivm.address_space<ub>>)
  hivm.hir.load ins(%X : memref<64xf32, #hivm.address_space<gm>>) outs(%b : memref<64xf32, #hivm.address_space<ub>>)
  %s = memref.load %b[%c0] : memref<64xf32, #hivm.address_space<ub>>
  hivm.hir.vmul ins(%a, %s : memref<64xf32, #hivm.address_space<ub>>, f32) outs(%a : memref<64xf32, #hivm.address_space<ub>>)
  return
}
func.func @before(%X: memref<64xf32, #hivm.address_space<gm>>) attributes {hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>, hivm.func_core_type = #hivm.func_core_type<AIV>} {
  %c0 = arith.constant 0 : index
  %p0 = arith.constant 0 : i64
  %p1 = arith.constant 256 : i64
  %a = hivm.hir.pointer_cast(%p0) : memref<64xf32, #hivm.address_space<ub>>
  %b = hivm.hir.pointer_cast(%p1) : memref<64xf32, #hivm.address_space<ub>>
  hivm.hir.load ins(%X : memref<64xf32, #hivm.address_space<gm>>) outs(%b : memref<64xf32, #hivm.address_space<ub>>)
  hivm.hir.load ins(%X : memref<64xf32, #hivm.address_space<gm>>) outs(%a : memref<64xf32, #hivm.address_space<ub>>)
  %s = memref.load %b[%c0] : memref<64xf32, #hivm.address_space<ub>>
  hivm.hir.vmul ins(%a, %s : memref<64xf32, #hivm.address_space<ub>>, f32) outs(%a : memref<64xf32, #hivm.address_space<ub>>)
  return
}
