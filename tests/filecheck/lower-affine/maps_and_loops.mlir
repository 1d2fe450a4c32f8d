// RUN: tilelang-npu opt %s -p lower-affine | filecheck %s
// A remainder is not negative; bounds are the maximum and the minimum of several; accesses have computed indices.
// CHECK-LABEL: func.func @k
// CHECK:      %[[FOUR:.*]] = arith.constant 4 : index
// CHECK-NEXT: %[[REST:.*]] = arith.remsi %i, %[[FOUR]] : index
// CHECK-NEXT: %[[ZERO:.*]] = arith.constant 0 : index
// CHECK-NEXT: %[[BELOW:.*]] = arith.cmpi slt, %[[REST]], %[[ZERO]] : index
// CHECK-NEXT: %[[RAISED:.*]] = arith.addi %[[REST]], %[[FOUR]] : index
// CHECK-NEXT: %[[MOD:.*]] = arith.select %[[BELOW]], %[[RAISED]], %[[REST]] : index
// CHECK:      %[[LOW:.*]] = arith.constant 0 : index
// CHECK:      %[[EIGHT:.*]] = arith.constant 8 : index
// CHECK-NEXT: %[[HIGH:.*]] = arith.minsi %[[EIGHT]], %n : index
// CHECK-NEXT: %[[STEP:.*]] = arith.constant 2 : index
// CHECK-NEXT: %{{.*}} = scf.for %j = %[[LOW]] to %[[HIGH]] step %[[STEP]] iter_args(%u = %x) -> (f32) {
// CHECK:        %[[AT:.*]] = arith.addi %j, %[[MOD]] : index
// CHECK-NEXT:   %[[V:.*]] = memref.load %m[%[[AT]]] : memref<16xf32>
// CHECK-NEXT:   scf.yield %[[V]] : f32
// CHECK-NEXT: }
// CHECK-NOT: affine
func.func @k(%m: memref<16xf32>, %i: index, %n: index, %x: f32) {
  %a = affine.apply affine_map<(d0) -> (d0 mod 4)>(%i)
  %r = affine.for %j = 0 to min affine_map<()[s0] -> (8, s0)>()[%n] step 2 iter_args(%u = %x) -> (f32) {
    %v = affine.load %m[%j + %a] : memref<16xf32>
    affine.yield %v : f32
  }
  return
}
