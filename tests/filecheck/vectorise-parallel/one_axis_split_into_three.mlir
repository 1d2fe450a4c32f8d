// RUN: tilelang-npu opt %s -p vectorise-parallel | filecheck %s
// for k in T.Parallel(96): x[k // 24, (k // 8) % 3, k % 8] has three axes; a part that is not divided evenly stays one axis.
// CHECK:      func.func @digits
// CHECK-NOT:  scf.for
// CHECK:      tile.elementwise "exp" ins(%x : memref<4x3x8xf32
// CHECK:      func.func @uneven
// CHECK:      scf.for
func.func @digits() {
  %x = tile.alloc "x" : memref<4x3x8xf32, #tile.scope<shared>>
  tile.parallel [96] {
  ^bb0(%k: index):
    %c24 = arith.constant 24 : index
    %c8 = arith.constant 8 : index
    %c3 = arith.constant 3 : index
    %p = arith.divui %k, %c24 : index
    %m = arith.divui %k, %c8 : index
    %q = arith.remui %m, %c3 : index
    %r = arith.remui %k, %c8 : index
    %v = memref.load %x[%p, %q, %r] : memref<4x3x8xf32, #tile.scope<shared>>
    %e = math.exp %v : f32
    memref.store %e, %x[%p, %q, %r] : memref<4x3x8xf32, #tile.scope<shared>>
  }
  return
}
func.func @uneven() {
  %x = tile.alloc "x" : memref<5x24xf32, #tile.scope<shared>>
  tile.parallel [100] {
  ^bb0(%k: index):
    %c24 = arith.constant 24 : index
    %p = arith.divui %k, %c24 : index
    %r = arith.remui %k, %c24 : index
    %v = memref.load %x[%p, %r] : memref<5x24xf32, #tile.scope<shared>>
    %e = math.exp %v : f32
    memref.store %e, %x[%p, %r] : memref<5x24xf32, #tile.scope<shared>>
  }
  return
}
