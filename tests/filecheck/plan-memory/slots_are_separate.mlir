// RUN: tilelang-npu opt %s -p plan-memory{synchronise=false} | filecheck %s
// Two slots become two addresses in one cast; the mark is removed.
// CHECK-NOT: annotation.mark
// CHECK:     hivm.hir.pointer_cast(%c0_i64, %c256_i64) : memref<64xf32
func.func @k() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  scf.for %i = %c0 to %c4 step %c1 {
    %a = memref.alloc() : memref<64xf32, #hivm.address_space<ub>>
    annotation.mark %a {hivm.multi_buffer = 2 : i32} : memref<64xf32, #hivm.address_space<ub>>
    hivm.hir.vexp ins(%a : memref<64xf32, #hivm.address_space<ub>>) outs(%a : memref<64xf32, #hivm.address_space<ub>>)
  }
  return
}
