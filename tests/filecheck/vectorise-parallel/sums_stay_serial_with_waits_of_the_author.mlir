// RUN: tilelang-npu opt %s -p vectorise-parallel{synchronise=false} | filecheck %s
// The author sets the waits for points that the scalar unit computes one by one.
// CHECK-NOT:  tile.reduce
// CHECK:      scf.for %i
// CHECK:        scf.for %j
// CHECK:          memref.store
func.func @k() {
  %x = tile.alloc "x" : memref<32x64xf32, #tile.scope<shared>>
  %s = tile.alloc "s" : memref<32xf32, #tile.scope<shared>>
  tile.parallel [32, 64] {
  ^bb0(%i: index, %j: index):
    %a = memref.load %x[%i, %j] : memref<32x64xf32, #tile.scope<shared>>
    %old = memref.load %s[%i] : memref<32xf32, #tile.scope<shared>>
    %new = arith.addf %old, %a : f32
    memref.store %new, %s[%i] : memref<32xf32, #tile.scope<shared>>
  }
  return
}
