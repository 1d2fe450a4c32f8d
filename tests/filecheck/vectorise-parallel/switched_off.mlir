// RUN: tilelang-npu opt %s -p 'vectorise-parallel{enabled=false}' | filecheck %s
// Switched off: the points are computed one by one.
// CHECK-NOT:  tile.elementwise
// CHECK:      scf.for %i
// CHECK-NEXT:   scf.for %j
// CHECK-NEXT:     memref.load %x[%i, %j]
func.func @k() {
  %x = tile.alloc "x" : memref<8x64xf32, #tile.scope<shared>>
  %m = tile.alloc "m" : memref<8xf32, #tile.scope<shared>>
  tile.parallel [8, 64] {
  ^bb0(%i: index, %j: index):
    %a = memref.load %x[%i, %j] : memref<8x64xf32, #tile.scope<shared>>
    %b = memref.load %m[%i] : memref<8xf32, #tile.scope<shared>>
    %d = arith.subf %a, %b : f32
    %e = math.exp %d : f32
    memref.store %e, %x[%i, %j] : memref<8x64xf32, #tile.scope<shared>>
  }
  return
}
