// RUN: tilelang-npu opt %s -p vectorise-parallel | filecheck %s
// x[at[i]]: a gather takes its indices from the tile that holds them.
// CHECK:      tile.elementwise "add" ins(%[[AT:.*]], %at : {{.*}}) outs(%[[AT]] : memref<1024xi32
// CHECK:      tile.call "gather" ins(%x, %[[AT]] : {{.*}}) outs(%[[GOT:.*]] : memref<1024xf32
// CHECK-NEXT: tile.copy %[[GOT]] to %y
// CHECK-NOT:  scf.for
func.func @k() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %c63 = arith.constant 63 : index
  %x = tile.alloc "x" : memref<512xf32, #tile.scope<shared>>
  %at = tile.alloc "at" : memref<1024xi32, #tile.scope<shared>>
  %y = tile.alloc "y" : memref<1024xf32, #tile.scope<shared>>
  tile.parallel [1024] {
  ^bb0(%i: index):
    %n = memref.load %at[%i] : memref<1024xi32, #tile.scope<shared>>
    %m = arith.index_cast %n : i32 to index
    %p = memref.load %x[%m] : memref<512xf32, #tile.scope<shared>>
    memref.store %p, %y[%i] : memref<1024xf32, #tile.scope<shared>>
  }
  return
}
