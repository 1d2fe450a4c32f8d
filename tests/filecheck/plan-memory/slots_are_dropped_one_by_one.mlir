// RUN: tilelang-npu opt %s -p "plan-memory{reuse=false synchronise=false}" | filecheck %s
// Four slots of 65 536 bytes do not fit in UB with another buffer; two do.
// CHECK: %a = hivm.hir.pointer_cast(%{{[^,]*}}, %{{[^,]*}}) : memref<16384xf32
// CHECK: %b = hivm.hir.pointer_cast(%{{[^,]*}}) : memref<4096xf32
func.func @k(%n: index) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  scf.for %i = %zero to %n step %one {
    %a = memref.alloc() : memref<16384xf32, #hivm.address_space<ub>>
    annotation.mark %a {hivm.multi_buffer = 4 : i32} : memref<16384xf32, #hivm.address_space<ub>>
    %b = memref.alloc() : memref<4096xf32, #hivm.address_space<ub>>
    hivm.hir.vexp ins(%a : memref<16384xf32, #hivm.address_space<ub>>) outs(%a : memref<16384xf32, #hivm.address_space<ub>>)
    hivm.hir.vexp ins(%b : memref<4096xf32, #hivm.address_space<ub>>) outs(%b : memref<4096xf32, #hivm.address_space<ub>>)
  }
  return
}
