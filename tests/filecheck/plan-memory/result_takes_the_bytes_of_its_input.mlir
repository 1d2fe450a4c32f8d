// RUN: tilelang-npu opt %s -p plan-memory{synchronise=false} | filecheck %s
// Together they do not fit; the live range of the first ends at the operation that writes the second, element by element.
// CHECK:      %[[A:.*]] = arith.constant 0 : i64
// CHECK:      hivm.hir.pointer_cast(%[[A]])
// CHECK:      hivm.hir.pointer_cast(%[[A]])
func.func @k(%x: memref<30000xf32, #hivm.address_space<gm>>) {
  %a = memref.alloc() : memref<30000xf32, #hivm.address_space<ub>>
  %b = memref.alloc() : memref<30000xf32, #hivm.address_space<ub>>
  hivm.hir.load ins(%x : memref<30000xf32, #hivm.address_space<gm>>) outs(%a : memref<30000xf32, #hivm.address_space<ub>>)
  hivm.hir.vexp ins(%a : memref<30000xf32, #hivm.address_space<ub>>) outs(%b : memref<30000xf32, #hivm.address_space<ub>>)
  hivm.hir.store ins(%b : memref<30000xf32, #hivm.address_space<ub>>) outs(%x : memref<30000xf32, #hivm.address_space<gm>>)
  return
}
