// RUN: tilelang-npu opt %s -p plan-memory{synchronise=false} --verify-diagnostics | filecheck %s
// The input is read again after the operation, so the result needs separate bytes.
// CHECK: error[T104]: the tile does not fit: UB needs 240 000 bytes
func.func @k(%x: memref<30000xf32, #hivm.address_space<gm>>) {
  %a = memref.alloc() : memref<30000xf32, #hivm.address_space<ub>>
  %b = memref.alloc() : memref<30000xf32, #hivm.address_space<ub>>
  hivm.hir.load ins(%x : memref<30000xf32, #hivm.address_space<gm>>) outs(%a : memref<30000xf32, #hivm.address_space<ub>>)
  hivm.hir.vexp ins(%a : memref<30000xf32, #hivm.address_space<ub>>) outs(%b : memref<30000xf32, #hivm.address_space<ub>>)
  hivm.hir.store ins(%b : memref<30000xf32, #hivm.address_space<ub>>) outs(%x : memref<30000xf32, #hivm.address_space<gm>>)
  hivm.hir.store ins(%a : memref<30000xf32, #hivm.address_space<ub>>) outs(%x : memref<30000xf32, #hivm.address_space<gm>>)
  return
}
