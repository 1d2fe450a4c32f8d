// RUN: tilelang-npu opt %s -p vectorise-parallel | filecheck %s
// y[i, j] = x[i, j - 8] where j >= 8, else 0: two loops, of which only the second reads x.
// CHECK-NOT:  scf.if
// CHECK:      tile.region %y[0, 0] [4, 8]
// CHECK:      tile.fill
// CHECK-NOT:  tile.region %x
// CHECK:      tile.region %y[0, 8] [4, 24]
// CHECK:      tile.region %x[0, 0] [4, 24]
// CHECK-NOT:  scf.if
// CHECK-NOT:  select
func.func @k() {
  %x = tile.alloc "x" : memref<4x32xf32, #tile.scope<shared>>
  %y = tile.alloc "y" : memref<4x32xf32, #tile.scope<shared>>
  tile.parallel [4, 32] {
  ^bb0(%i: index, %j: index):
    %c8 = arith.constant 8 : index
    %there = arith.cmpi sge, %j, %c8 : index
    %v = scf.if %there -> (f32) {
      %at = arith.subi %j, %c8 : index
      %one = memref.load %x[%i, %at] : memref<4x32xf32, #tile.scope<shared>>
      scf.yield %one : f32
    } else {
      %zero = arith.constant 0.0 : f32
      scf.yield %zero : f32
    }
    memref.store %v, %y[%i, %j] : memref<4x32xf32, #tile.scope<shared>>
  }
  return
}
