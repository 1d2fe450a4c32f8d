// RUN: tilelang-npu opt %s -p plan-memory{synchronise=false} | filecheck %s
// The large buffers, which only the Vector pipe accesses, share bytes. The loaded buffers do not, although their live ranges
// are disjoint: the load would have to wait.
// CHECK: %[[S:.*]] = hivm.hir.pointer_cast(%c96000_i64) : memref<64xf32
// CHECK: hivm.hir.pointer_cast(%c0_i64) : memref<24000xf32
// CHECK: hivm.hir.pointer_cast(%c0_i64) : memref<24000xf32
// CHECK: hivm.hir.pointer_cast(%c96256_i64) : memref<64xf32
func.func @k(%X: memref<64xf32, #hivm.address_space<gm>>) {
  %s = memref.alloc() : memref<64xf32, #hivm.address_space<ub>>
  hivm.hir.load ins(%X : memref<64xf32, #hivm.address_space<gm>>) outs(%s : memref<64xf32, #hivm.address_space<ub>>)
  hivm.hir.vexp ins(%s : memref<64xf32, #hivm.address_space<ub>>) outs(%s : memref<64xf32, #hivm.address_space<ub>>)
  %a = memref.alloc() : memref<24000xf32, #hivm.address_space<ub>>
  hivm.hir.vexp ins(%a : memref<24000xf32, #hivm.address_space<ub>>) outs(%a : memref<24000xf32, #hivm.address_space<ub>>)
  %b = memref.alloc() : memref<24000xf32, #hivm.address_space<ub>>
  hivm.hir.vexp ins(%b : memref<24000xf32, #hivm.address_space<ub>>) outs(%b : memref<24000xf32, #hivm.address_space<ub>>)
  %c = memref.alloc() : memref<24000xf32, #hivm.address_space<ub>>
  hivm.hir.vexp ins(%c : memref<24000xf32, #hivm.address_space<ub>>) outs(%c : memref<24000xf32, #hivm.address_space<ub>>)
  %t = memref.alloc() : memref<64xf32, #hivm.address_space<ub>>
  hivm.hir.load ins(%X : memref<64xf32, #hivm.address_space<gm>>) outs(%t : memref<64xf32, #hivm.address_space<ub>>)
  hivm.hir.vexp ins(%t : memref<64xf32, #hivm.address_space<ub>>) outs(%t : memref<64xf32, #hivm.address_space<ub>>)
  return
}
