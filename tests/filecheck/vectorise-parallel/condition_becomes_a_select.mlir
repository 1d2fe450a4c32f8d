// RUN: tilelang-npu opt %s -p vectorise-parallel | filecheck %s
// Both sides can be read at every point, so the condition becomes a select.
// CHECK-NOT:  scf.
// CHECK:      tile.elementwise "compare"
// CHECK:      tile.elementwise "select"
func.func @k() {
  %x = tile.alloc "x" : memref<4x32xf32, #tile.scope<shared>>
  %y = tile.alloc "y" : memref<4x32xf32, #tile.scope<shared>>
  tile.parallel [4, 32] {
  ^bb0(%i: index, %j: index):
    %there = arith.cmpi sge, %j, %i : index
    %zero = arith.constant 0.0 : f32
    %v = scf.if %there -> (f32) {
      %one = memref.load %x[%i, %j] : memref<4x32xf32, #tile.scope<shared>>
      scf.yield %one : f32
    } else {
      scf.yield %zero : f32
    }
    memref.store %v, %y[%i, %j] : memref<4x32xf32, #tile.scope<shared>>
  }
  return
}
