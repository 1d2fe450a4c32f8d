// RUN: tilelang-npu opt %s -p vectorise-parallel | filecheck %s
// x[2 * i + 1, j] is a region of a view of the same bytes with pairs of rows: no data moves.
// CHECK:      %[[PAIRS:.*]] = tile.view %x : {{.*}} to memref<16x2x64xf32
// CHECK-NEXT: %[[ODD:.*]] = tile.region %[[PAIRS]][0, 1, 0] [16, 1, 64] keep [0, 2]
// CHECK-NEXT: tile.copy %[[ODD]] to %y
// CHECK-NOT:  scf.for
func.func @k() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %c63 = arith.constant 63 : index
  %x = tile.alloc "x" : memref<32x64xf32, #tile.scope<shared>>
  %y = tile.alloc "y" : memref<16x64xf32, #tile.scope<shared>>
  tile.parallel [16, 64] {
  ^bb0(%i: index, %j: index):
    %m = arith.muli %i, %c2 : index
    %n = arith.addi %m, %c1 : index
    %p = memref.load %x[%n, %j] : memref<32x64xf32, #tile.scope<shared>>
    memref.store %p, %y[%i, %j] : memref<16x64xf32, #tile.scope<shared>>
  }
  return
}
