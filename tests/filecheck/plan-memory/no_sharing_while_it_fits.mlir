// RUN: tilelang-npu opt %s -p plan-memory{synchronise=false} | filecheck %s
// All buffers fit one after the other, so none shares bytes; they are aligned to 32 bytes.
// CHECK-DAG: %[[A:.*]] = arith.constant 0 : i64
// CHECK-DAG: %[[B:.*]] = arith.constant 32 : i64
// CHECK-DAG: hivm.hir.pointer_cast(%[[A]]) : memref<3xf32
// CHECK-DAG: hivm.hir.pointer_cast(%[[B]]) : memref<64xf32
func.func @k() {
  %a = memref.alloc() : memref<3xf32, #hivm.address_space<ub>>
  %b = memref.alloc() : memref<64xf32, #hivm.address_space<ub>>
  hivm.hir.vexp ins(%a : memref<3xf32, #hivm.address_space<ub>>) outs(%a : memref<3xf32, #hivm.address_space<ub>>)
  hivm.hir.vexp ins(%b : memref<64xf32, #hivm.address_space<ub>>) outs(%b : memref<64xf32, #hivm.address_space<ub>>)
  return
}
