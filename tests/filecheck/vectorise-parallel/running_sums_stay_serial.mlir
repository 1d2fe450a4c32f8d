// RUN: tilelang-npu opt %s -p vectorise-parallel | filecheck %s
// y[i, j] is the sum up to column j, and s[i] = x[i, j] - s[i] is no sum: both loops are executed point by point.
// CHECK-NOT: tile.reduce
// CHECK:     scf.for
// CHECK:     scf.for
// CHECK-NOT: tile.reduce
// CHECK:     scf.for
// CHECK:     scf.for
// CHECK-NOT: tile.reduce
func.func @k() {
  %x = tile.alloc "x" : memref<32x64xf32, #tile.scope<shared>>
  %y = tile.alloc "y" : memref<32x64xf32, #tile.scope<shared>>
  %s = tile.alloc "s" : memref<32xf32, #tile.scope<shared>>
  tile.parallel [32, 64] {
  ^bb0(%i: index, %j: index):
    %a = memref.load %x[%i, %j] : memref<32x64xf32, #tile.scope<shared>>
    %old = memref.load %s[%i] : memref<32xf32, #tile.scope<shared>>
    %new = arith.addf %old, %a : f32
    memref.store %new, %s[%i] : memref<32xf32, #tile.scope<shared>>
    %sum = memref.load %s[%i] : memref<32xf32, #tile.scope<shared>>
    memref.store %sum, %y[%i, %j] : memref<32x64xf32, #tile.scope<shared>>
  }
  tile.parallel [32, 64] {
  ^bb0(%i: index, %j: index):
    %a = memref.load %x[%i, %j] : memref<32x64xf32, #tile.scope<shared>>
    %old = memref.load %s[%i] : memref<32xf32, #tile.scope<shared>>
    %new = arith.subf %a, %old : f32
    memref.store %new, %s[%i] : memref<32xf32, #tile.scope<shared>>
  }
  return
}
