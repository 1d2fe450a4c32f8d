// RUN: tilelang-npu opt %s -p serialise-loops | filecheck %s
// One loop for each induction variable; reduced and shared values are carried from one iteration to the next.
// CHECK-LABEL: func.func @k
// CHECK:      scf.for %i = %{{.*}} to %n step %{{.*}} {
// CHECK-NEXT:   scf.for %j = %{{.*}} to %{{.*}} step %{{.*}} {
// CHECK-NEXT:     memref.store %x, %m[%i, %j] : memref<8x16xf32>
// CHECK-NEXT:   }
// CHECK-NEXT: }
// CHECK-NEXT: %{{.*}} = scf.for %{{.*}} = %c0 to %n step %c1 iter_args(%[[A:.*]] = %x) -> (f32) {
// CHECK-NEXT:   %[[B:.*]] = scf.for %{{.*}} = %c0 to %n step %c1 iter_args(%[[C:.*]] = %[[A]]) -> (f32) {
// CHECK-NEXT:     %[[D:.*]] = arith.addf %[[C]], %x : f32
// CHECK-NEXT:     scf.yield %[[D]] : f32
// CHECK-NEXT:   }
// CHECK-NEXT:   scf.yield %[[B]] : f32
// CHECK-NEXT: }
// CHECK:      %{{.*}} = scf.for %[[I:.*]] = %{{.*}} to %{{.*}} step %{{.*}} iter_args(%[[O:.*]] = %t) -> (tensor<4x8xf32>) {
// CHECK-NEXT:   %[[P:.*]] = tensor.insert_slice %row into %[[O]][%[[I]], 0] [1, 8] [1, 1] : tensor<8xf32> into tensor<4x8xf32>
// CHECK-NEXT:   scf.yield %[[P]] : tensor<4x8xf32>
// CHECK-NEXT: }
// CHECK-NOT: scf.forall
// CHECK-NOT: scf.parallel
func.func @k(%m: memref<8x16xf32>, %n: index, %x: f32, %t: tensor<4x8xf32>, %row: tensor<8xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.forall (%i, %j) in (%n, 16) {
    memref.store %x, %m[%i, %j] : memref<8x16xf32>
  }
  %s = scf.parallel (%i, %j) = (%c0, %c0) to (%n, %n) step (%c1, %c1) init (%x) -> f32 {
    scf.reduce(%x : f32) {
    ^bb0(%l: f32, %r: f32):
      %v = arith.addf %l, %r : f32
      scf.reduce.return %v : f32
    }
  }
  %r = scf.forall (%i) in (4) shared_outs(%o = %t) -> (tensor<4x8xf32>) {
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %row into %o[%i, 0] [1, 8] [1, 1] : tensor<8xf32> into tensor<4x8xf32>
    }
  }
  return
}
