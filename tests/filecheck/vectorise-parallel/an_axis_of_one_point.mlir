// RUN: tilelang-npu opt %s -p vectorise-parallel | filecheck %s
// for i, o in T.Parallel(96, 1): x[i, 0] has one axis; with two points in o, both write the same element.
// CHECK:      func.func @one
// CHECK-NOT:  scf.for
// CHECK:        tile.region %x[0, 0] [96, 1] keep [0]
// CHECK:        tile.elementwise "exp" ins(%{{.}} : memref<96xf32
// CHECK:      func.func @two
// CHECK:      scf.for
func.func @one() {
  %x = tile.alloc "x" : memref<96x1xf32, #tile.scope<shared>>
  tile.parallel [96, 1] {
  ^bb0(%i: index, %o: index):
    %c0 = arith.constant 0 : index
    %v = memref.load %x[%i, %c0] : memref<96x1xf32, #tile.scope<shared>>
    %e = math.exp %v : f32
    memref.store %e, %x[%i, %c0] : memref<96x1xf32, #tile.scope<shared>>
  }
  return
}
func.func @two() {
  %x = tile.alloc "x" : memref<96x1xf32, #tile.scope<shared>>
  tile.parallel [96, 2] {
  ^bb0(%i: index, %o: index):
    %c0 = arith.constant 0 : index
    %v = memref.load %x[%i, %c0] : memref<96x1xf32, #tile.scope<shared>>
    %e = math.exp %v : f32
    memref.store %e, %x[%i, %c0] : memref<96x1xf32, #tile.scope<shared>>
  }
  return
}
