// RUN: tilelang-npu opt %s -p plan-memory{synchronise=false} | filecheck %s
// Together they need more than UB has. The live range of %a ends before that of %c starts, so they share an address.
// CHECK: %[[ZERO:.*]] = arith.constant 0 : i64
// CHECK: %[[A:.*]] = hivm.hir.pointer_cast(%[[ZERO]]) : memref<24000xf32
// CHECK: hivm.hir.pointer_cast(%{{.*}}) : memref<24000xf32
// CHECK: hivm.hir.pointer_cast(%[[ZERO]]) : memref<24000xf32
func.func @k() {
  %a = memref.alloc() : memref<24000xf32, #hivm.address_space<ub>>
  %b = memref.alloc() : memref<24000xf32, #hivm.address_space<ub>>
  hivm.hir.vexp ins(%a : memref<24000xf32, #hivm.address_space<ub>>) outs(%b : memref<24000xf32, #hivm.address_space<ub>>)
  %c = memref.alloc() : memref<24000xf32, #hivm.address_space<ub>>
  hivm.hir.vexp ins(%b : memref<24000xf32, #hivm.address_space<ub>>) outs(%c : memref<24000xf32, #hivm.address_space<ub>>)
  return
}
