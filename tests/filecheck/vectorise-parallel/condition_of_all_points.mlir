// RUN: tilelang-npu opt %s -p vectorise-parallel | filecheck %s
// The condition is the same for all points: a branch around vector work.
// CHECK:      scf.for %k
// CHECK:        scf.if
// CHECK-NOT:    scf.for
// CHECK:          tile.region %x[%{{.*}}, 0] [1, 32]
// CHECK:          tile.copy
// CHECK:        } else {
// CHECK:          tile.fill
func.func @k() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %x = tile.alloc "x" : memref<4x32xf32, #tile.scope<shared>>
  %y = tile.alloc "y" : memref<4x32xf32, #tile.scope<shared>>
  scf.for %k = %c0 to %c4 step %c1 {
    tile.parallel [32] {
    ^bb0(%j: index):
      %there = arith.cmpi sgt, %k, %c0 : index
      %v = scf.if %there -> (f32) {
        %at = arith.subi %k, %c1 : index
        %one = memref.load %x[%at, %j] : memref<4x32xf32, #tile.scope<shared>>
        scf.yield %one : f32
      } else {
        %zero = arith.constant 0.0 : f32
        scf.yield %zero : f32
      }
      memref.store %v, %y[%k, %j] : memref<4x32xf32, #tile.scope<shared>>
    }
  }
  return
}
