// RUN: tilelang-npu opt %s -p 'plan-memory{reuse=false synchronise=false}' | filecheck %s
// The user's two buffers have separate bytes although their live ranges are disjoint; the scratch buffers of two operations
// share bytes.
// CHECK-DAG: %[[A:.*]] = arith.constant 0 : i64
// CHECK-DAG: %[[B:.*]] = arith.constant 65536 : i64
// CHECK-DAG: %[[S:.*]] = arith.constant 131072 : i64
// CHECK:     %a = hivm.hir.pointer_cast(%[[A]])
// CHECK:     %b = hivm.hir.pointer_cast(%[[B]])
// CHECK:     %s = hivm.hir.pointer_cast(%[[S]])
// CHECK:     %t = hivm.hir.pointer_cast(%[[S]])
func.func @k() {
  %a = memref.alloc() : memref<16384xf32, #hivm.address_space<ub>>
  %b = memref.alloc() : memref<16384xf32, #hivm.address_space<ub>>
  %s = memref.alloc() {tile.scratch} : memref<16384xf32, #hivm.address_space<ub>>
  hivm.hir.vexp ins(%a : memref<16384xf32, #hivm.address_space<ub>>) outs(%s : memref<16384xf32, #hivm.address_space<ub>>)
  %t = memref.alloc() {tile.scratch} : memref<16384xf32, #hivm.address_space<ub>>
  hivm.hir.vexp ins(%b : memref<16384xf32, #hivm.address_space<ub>>) outs(%t : memref<16384xf32, #hivm.address_space<ub>>)
  return
}
