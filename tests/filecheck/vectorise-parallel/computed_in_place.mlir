// RUN: tilelang-npu opt %s -p vectorise-parallel | filecheck %s
// A result that overwrites its operand is computed in place if the old value has no other reader.
// CHECK:      func.func @alone
// CHECK-NOT:  tile.alloc "T.Parallel"
// CHECK:      tile.elementwise "mul" ins(%x, {{.*}}) outs(%x :
// CHECK:      tile.elementwise "exp" ins(%x : {{.*}}) outs(%x :
// CHECK:      func.func @twice
// CHECK:      %[[OWN:.*]] = tile.alloc "T.Parallel"
// CHECK:      tile.elementwise "mul" ins(%x, {{.*}}) outs(%[[OWN]] :
// CHECK:      tile.elementwise "max" ins(%[[OWN]], %x : {{.*}}) outs(%x :
// CHECK:      func.func @elsewhere
// CHECK:      %[[OWN:.*]] = tile.alloc "T.Parallel"
// CHECK:      tile.elementwise "mul" ins(%x, {{.*}}) outs(%[[OWN]] :
// CHECK:      tile.elementwise "exp" ins(%[[OWN]] : {{.*}}) outs(%y :
func.func @alone() {
  %x = tile.alloc "x" : memref<4x32xf32, #tile.scope<shared>>
  tile.parallel [4, 32] {
  ^bb0(%i: index, %j: index):
    %two = arith.constant 2.0 : f32
    %v = memref.load %x[%i, %j] : memref<4x32xf32, #tile.scope<shared>>
    %w = arith.mulf %v, %two : f32
    %e = math.exp %w : f32
    memref.store %e, %x[%i, %j] : memref<4x32xf32, #tile.scope<shared>>
  }
  return
}
func.func @twice() {
  %x = tile.alloc "x" : memref<4x32xf32, #tile.scope<shared>>
  tile.parallel [4, 32] {
  ^bb0(%i: index, %j: index):
    %two = arith.constant 2.0 : f32
    %v = memref.load %x[%i, %j] : memref<4x32xf32, #tile.scope<shared>>
    %w = arith.mulf %v, %two : f32
    %e = arith.maximumf %w, %v : f32
    memref.store %e, %x[%i, %j] : memref<4x32xf32, #tile.scope<shared>>
  }
  return
}
func.func @elsewhere() {
  %x = tile.alloc "x" : memref<4x32xf32, #tile.scope<shared>>
  %y = tile.alloc "y" : memref<4x32xf32, #tile.scope<shared>>
  tile.parallel [4, 32] {
  ^bb0(%i: index, %j: index):
    %two = arith.constant 2.0 : f32
    %v = memref.load %x[%i, %j] : memref<4x32xf32, #tile.scope<shared>>
    %w = arith.mulf %v, %two : f32
    %e = math.exp %w : f32
    memref.store %e, %y[%i, %j] : memref<4x32xf32, #tile.scope<shared>>
  }
  return
}
