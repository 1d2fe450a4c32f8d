// RUN: tilelang-npu opt %s -p plan-memory{synchronise=false} | filecheck %s
// Two slots of the larger buffer do not fit; one does, and the smaller buffer keeps its two.
// CHECK: %a = hivm.hir.pointer_cast(%{{[^,]*}}) : memref<32768xf32
// CHECK: %b = hivm.hir.pointer_cast(%{{.*}}, %{{.*}}) : memref<4096xf32
func.func @k(%n: index) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  scf.for %i = %zero to %n step %one {
    %a = memref.alloc() : memref<32768xf32, #hivm.address_space<ub>>
    annotation.mark %a {hivm.multi_buffer = 2 : i32} : memref<32768xf32, #hivm.address_space<ub>>
    %b = memref.alloc() : memref<4096xf32, #hivm.address_space<ub>>
    annotation.mark %b {hivm.multi_buffer = 2 : i32} : memref<4096xf32, #hivm.address_space<ub>>
    hivm.hir.vexp ins(%a : memref<32768xf32, #hivm.address_space<ub>>) outs(%a : memref<32768xf32, #hivm.address_space<ub>>)
    hivm.hir.vexp ins(%b : memref<4096xf32, #hivm.address_space<ub>>) outs(%b : memref<4096xf32, #hivm.address_space<ub>>)
  }
  return
}
