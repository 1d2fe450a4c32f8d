// RUN: tilelang-npu opt %s -p vectorise-parallel | filecheck %s
// A statement under a condition on the rows becomes vector work on those rows.
// CHECK-NOT:  scf.
// CHECK:      tile.region %y[2, 0] [2, 32]
// CHECK:      tile.fill
// CHECK-NOT:  tile.fill
func.func @k() {
  %y = tile.alloc "y" : memref<4x32xf32, #tile.scope<shared>>
  tile.parallel [4, 32] {
  ^bb0(%i: index, %j: index):
    %c1 = arith.constant 1 : index
    %zero = arith.constant 0.0 : f32
    %below = arith.cmpi sgt, %i, %c1 : index
    scf.if %below {
      memref.store %zero, %y[%i, %j] : memref<4x32xf32, #tile.scope<shared>>
    }
  }
  return
}
