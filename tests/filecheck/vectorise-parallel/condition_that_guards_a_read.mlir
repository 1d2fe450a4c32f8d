// RUN: tilelang-npu opt %s -p vectorise-parallel | filecheck %s
// The value of one element decides whether another may be read: each point has its branch.
// CHECK-NOT:  tile.elementwise
// CHECK:      scf.for
// CHECK:        memref.load %x
// CHECK:        arith.cmpf
// CHECK:        scf.if
// CHECK:          memref.load %x
// CHECK:        memref.store
func.func @k() {
  %x = tile.alloc "x" : memref<32xf32, #tile.scope<shared>>
  %y = tile.alloc "y" : memref<32xf32, #tile.scope<shared>>
  tile.parallel [32] {
  ^bb0(%j: index):
    %c1 = arith.constant 1 : index
    %zero = arith.constant 0.0 : f32
    %here = memref.load %x[%j] : memref<32xf32, #tile.scope<shared>>
    %positive = arith.cmpf ogt, %here, %zero : f32
    %v = scf.if %positive -> (f32) {
      %at = arith.subi %j, %c1 : index
      %one = memref.load %x[%at] : memref<32xf32, #tile.scope<shared>>
      scf.yield %one : f32
    } else {
      scf.yield %zero : f32
    }
    memref.store %v, %y[%j] : memref<32xf32, #tile.scope<shared>>
  }
  return
}
