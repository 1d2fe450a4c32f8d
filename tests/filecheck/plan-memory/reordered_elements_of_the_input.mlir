// RUN: tilelang-npu opt %s -p plan-memory{synchronise=false} --verify-diagnostics | filecheck %s
// The second source reads other elements of the dying buffer than those that the result would overwrite.
// CHECK: error[T104]: the tile does not fit: UB needs 240 000 bytes
func.func @k(%x: memref<30000xf32, #hivm.address_space<gm>>) {
  %a = memref.alloc() : memref<30000xf32, #hivm.address_space<ub>>
  %b = memref.alloc() : memref<30000xf32, #hivm.address_space<ub>>
  hivm.hir.load ins(%x : memref<30000xf32, #hivm.address_space<gm>>) outs(%a : memref<30000xf32, #hivm.address_space<ub>>)
  %a0 = memref.subview %a[0] [16000] [1] : memref<30000xf32, #hivm.address_space<ub>> to memref<16000xf32, strided<[1]>, #hivm.address_space<ub>>
  %a1 = memref.subview %a[8000] [16000] [1] : memref<30000xf32, #hivm.address_space<ub>> to memref<16000xf32, strided<[1], offset: 8000>, #hivm.address_space<ub>>
  %b0 = memref.subview %b[0] [16000] [1] : memref<30000xf32, #hivm.address_space<ub>> to memref<16000xf32, strided<[1]>, #hivm.address_space<ub>>
  hivm.hir.vadd ins(%a0, %a1 : memref<16000xf32, strided<[1]>, #hivm.address_space<ub>>, memref<16000xf32, strided<[1], offset: 8000>, #hivm.address_space<ub>>) outs(%b0 : memref<16000xf32, strided<[1]>, #hivm.address_space<ub>>)
  hivm.hir.store ins(%b : memref<30000xf32, #hivm.address_space<ub>>) outs(%x : memref<30000xf32, #hivm.address_space<gm>>)
  return
}
