// RUN: tilelang-npu opt %s -p expand-multi-buffer | filecheck %s
// Three slots: three casts before the loop, and a selection by the iteration modulo three at the start of its body.
// CHECK:      %[[P0:.*]] = hivm.hir.pointer_cast(%p0) : memref<64xf32
// CHECK-NEXT: %[[P1:.*]] = hivm.hir.pointer_cast(%p1) : memref<64xf32
// CHECK-NEXT: %[[P2:.*]] = hivm.hir.pointer_cast(%p2) : memref<64xf32
// CHECK-NEXT: scf.for %[[I:.*]] =
// CHECK-NEXT:   %[[M:.*]] = arith.remui %[[I]], %c3
// CHECK-NEXT:   %[[T:.*]] = arith.index_cast %[[M]]
// CHECK-NEXT:   %[[ONE:.*]] = arith.cmpi eq, %[[T]], %c1_i64
// CHECK-NEXT:   %[[REST:.*]] = arith.select %[[ONE]], %[[P1]], %[[P2]]
// CHECK-NEXT:   %[[ZERO:.*]] = arith.cmpi eq, %[[T]], %c0_i64
// CHECK-NEXT:   %[[A:.*]] = arith.select %[[ZERO]], %[[P0]], %[[REST]]
// CHECK-NEXT:   hivm.hir.vrelu ins(%[[A]]
func.func @k() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %p0 = arith.constant 0 : i64
  %p1 = arith.constant 256 : i64
  %p2 = arith.constant 512 : i64
  scf.for %i = %c0 to %c4 step %c1 {
    %a = hivm.hir.pointer_cast(%p0, %p1, %p2) : memref<64xf32, #hivm.address_space<ub>>
    hivm.hir.vrelu ins(%a : memref<64xf32, #hivm.address_space<ub>>) outs(%a : memref<64xf32, #hivm.address_space<ub>>)
  }
  return
}
