// RUN: tilelang-npu opt %s -p vectorise-parallel | filecheck %s
// if x > 0: y = x, else: y = -x is one write, and the old value of y is not read; without an else it is kept.
// CHECK:      func.func @either
// CHECK-NOT:  scf.
// CHECK:      %[[MASK:.*]] = tile.alloc "T.Parallel" : memref<4x32xi1
// CHECK:      tile.elementwise "select" ins({{.*}}) outs(%y :
// CHECK-NOT:  outs(%y
// CHECK:      func.func @kept
// CHECK-NOT:  scf.
// CHECK:      tile.elementwise "select" ins({{.*}}, %x, %y : {{.*}}) outs(%y :
func.func @either() {
  %x = tile.alloc "x" : memref<4x32xf32, #tile.scope<shared>>
  %y = tile.alloc "y" : memref<4x32xf32, #tile.scope<shared>>
  tile.parallel [4, 32] {
  ^bb0(%i: index, %j: index):
    %zero = arith.constant 0.0 : f32
    %v = memref.load %x[%i, %j] : memref<4x32xf32, #tile.scope<shared>>
    %positive = arith.cmpf ogt, %v, %zero : f32
    scf.if %positive {
      memref.store %v, %y[%i, %j] : memref<4x32xf32, #tile.scope<shared>>
    } else {
      %n = arith.negf %v : f32
      memref.store %n, %y[%i, %j] : memref<4x32xf32, #tile.scope<shared>>
    }
  }
  return
}
func.func @kept() {
  %x = tile.alloc "x" : memref<4x32xf32, #tile.scope<shared>>
  %y = tile.alloc "y" : memref<4x32xf32, #tile.scope<shared>>
  tile.parallel [4, 32] {
  ^bb0(%i: index, %j: index):
    %zero = arith.constant 0.0 : f32
    %v = memref.load %x[%i, %j] : memref<4x32xf32, #tile.scope<shared>>
    %positive = arith.cmpf ogt, %v, %zero : f32
    scf.if %positive {
      memref.store %v, %y[%i, %j] : memref<4x32xf32, #tile.scope<shared>>
    }
  }
  return
}
