// RUN: tilelang-npu opt %s -p vectorise-parallel | filecheck %s
// Both tiles and the scratch of a transposition do not fit in UB: 32 rows at a time do, and then the remaining 8.
// CHECK:      scf.for
// CHECK:        tile.region %a[0, %{{.*}}] [300, 32]
// CHECK:        tile.call "transpose"
// CHECK:      }
// CHECK:      tile.region %a[0, 192] [300, 8]
// CHECK:      tile.call "transpose"
// CHECK-NOT:  memref.store
func.func @k() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %c63 = arith.constant 63 : index
  %a = tile.alloc "a" : memref<300x200xi8, #tile.scope<shared>>
  %y = tile.alloc "y" : memref<200x300xi8, #tile.scope<shared>>
  tile.parallel [200, 300] {
  ^bb0(%i: index, %j: index):
    %p = memref.load %a[%j, %i] : memref<300x200xi8, #tile.scope<shared>>
    memref.store %p, %y[%i, %j] : memref<200x300xi8, #tile.scope<shared>>
  }
  return
}
