// RUN: tilelang-npu opt %s -p vectorise-parallel | filecheck %s
// An index that varies between points is compared with a loop-invariant value: one arange of the difference, and a scalar
// within range.
// CHECK:      %[[PLACES:.*]] = tile.alloc "T.Parallel" : memref<4x32xf32
// CHECK:      tile.call "arange" ins(%{{.*}}, %{{.*}}, %{{.*}} : index, index, index) outs(%[[PLACES]] : memref<4x32xf32
// CHECK:      arith.maxsi
// CHECK:      arith.minsi
// CHECK:      %[[BOUND:.*]] = arith.sitofp
// CHECK:      tile.elementwise "compare" ins(%[[PLACES]], %[[BOUND]] : {{.*}} {compare_mode = "le"}
// CHECK-NOT:  arange
func.func @k(%first: index, %row: index) {
  %x = tile.alloc "x" : memref<4x32xf32, #tile.scope<shared>>
  tile.parallel [4, 32] {
  ^bb0(%i: index, %j: index):
    %column = arith.addi %first, %j : index
    %own = arith.addi %row, %i : index
    %seen = arith.cmpi sle, %column, %own : index
    %v = memref.load %x[%i, %j] : memref<4x32xf32, #tile.scope<shared>>
    %never = arith.constant -1.0 : f32
    %chosen = arith.select %seen, %v, %never : f32
    memref.store %chosen, %x[%i, %j] : memref<4x32xf32, #tile.scope<shared>>
  }
  return
}
