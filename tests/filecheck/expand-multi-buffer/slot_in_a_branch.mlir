// RUN: tilelang-npu opt %s -p expand-multi-buffer | filecheck %s
// In a branch, the slot is selected by the iteration of the loop that contains the branch.
// CHECK:      %[[P0:.*]] = hivm.hir.pointer_cast(%p0) : memref<64xf32
// CHECK-NEXT: %[[P1:.*]] = hivm.hir.pointer_cast(%p1) : memref<64xf32
// CHECK-NEXT: scf.for %[[I:.*]] =
// CHECK-NEXT:   %[[M:.*]] = arith.remui %[[I]], %c2
// CHECK-NEXT:   %[[T:.*]] = arith.index_cast %[[M]]
// CHECK:        scf.if %yes
// CHECK-NEXT:     %[[ZERO:.*]] = arith.cmpi eq, %[[T]], %c0_i64
// CHECK-NEXT:     %[[A:.*]] = arith.select %[[ZERO]], %[[P0]], %[[P1]]
// CHECK-NEXT:     hivm.hir.vrelu ins(%[[A]]
func.func @k(%yes: i1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %p0 = arith.constant 0 : i64
  %p1 = arith.constant 256 : i64
  scf.for %i = %c0 to %c4 step %c1 {
    scf.if %yes {
      %a = hivm.hir.pointer_cast(%p0, %p1) : memref<64xf32, #hivm.address_space<ub>>
      hivm.hir.vrelu ins(%a : memref<64xf32, #hivm.address_space<ub>>) outs(%a : memref<64xf32, #hivm.address_space<ub>>)
    }
  }
  return
}
