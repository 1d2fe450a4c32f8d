// RUN: tilelang-npu opt %s -p insert-sync{by_hand=true} | filecheck %s
// The author orders lines 3 and 4; the pass orders the two ops of line 4.
// CHECK:      hivm.hir.vexp
// CHECK-NEXT: hivm.hir.vadd
// CHECK-NEXT: hivm.hir.pipe_barrier[<PIPE_V>]
// CHECK-NEXT: hivm.hir.vmul
// CHECK-NEXT: return
func.func @k() attributes {hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>, hivm.func_core_type = #hivm.func_core_type<AIV>} {
  %c0 = arith.constant 0 : i64
  %a = hivm.hir.pointer_cast(%c0) : memref<64xf32, #hivm.address_space<ub>>
  hivm.hir.vexp ins(%a : memref<64xf32, #hivm.address_space<ub>>) outs(%a : memref<64xf32, #hivm.address_space<ub>>) loc("k.py":3:1)
  hivm.hir.vadd ins(%a, %a : memref<64xf32, #hivm.address_space<ub>>, memref<64xf32, #hivm.address_space<ub>>) outs(%a : memref<64xf32, #hivm.address_space<ub>>) loc("k.py":4:1)
  hivm.hir.vmul ins(%a, %a : memref<64xf32, #hivm.address_space<ub>>, memref<64xf32, #hivm.address_space<ub>>) outs(%a : memref<64xf32, #hivm.address_space<ub>>) loc("k.py":4:9)
  return
}
