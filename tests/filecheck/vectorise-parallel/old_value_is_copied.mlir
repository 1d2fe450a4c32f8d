// RUN: tilelang-npu opt %s -p vectorise-parallel | filecheck %s
// A swap: the first statement overwrites a value that the second needs, so the old value is copied first.
// CHECK:      tile.copy %x to %[[OLD:.*]] :
// CHECK-NEXT: tile.copy %y to %x
// CHECK-NEXT: tile.copy %[[OLD]] to %y
func.func @k() {
  %x = tile.alloc "x" : memref<64xf32, #tile.scope<shared>>
  %y = tile.alloc "y" : memref<64xf32, #tile.scope<shared>>
  tile.parallel [64] {
  ^bb0(%i: index):
    %a = memref.load %x[%i] : memref<64xf32, #tile.scope<shared>>
    %b = memref.load %y[%i] : memref<64xf32, #tile.scope<shared>>
    memref.store %b, %x[%i] : memref<64xf32, #tile.scope<shared>>
    memref.store %a, %y[%i] : memref<64xf32, #tile.scope<shared>>
  }
  return
}
