// RUN: tilelang-npu opt %s -p vectorise-parallel | filecheck %s
// y[2 * i + 1, 2 * j] and y[2 * i + 1, 2 * j + 1]: every second row is a region of a view, and its elements are interleaved.
// CHECK:      %[[PAIRS:.*]] = tile.view %y : {{.*}} to memref<32x2x64xf16
// CHECK-NEXT: %[[ODD:.*]] = tile.region %[[PAIRS]][0, 1, 0] [32, 1, 64] keep [0, 2]
// CHECK:      scf.for
// CHECK:        %[[ROWS:.*]] = tile.region %[[ODD]][%{{.*}}, 0] [8, 64]
// CHECK-NEXT:   tile.call "interleave" {{.*}} outs(%[[ROWS]] :
// CHECK-NOT:  memref.store
func.func @k() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %c63 = arith.constant 63 : index
  %x = tile.alloc "x" : memref<4x32x32xf16, #tile.scope<shared>>
  %y = tile.alloc "y" : memref<64x64xf16, #tile.scope<shared>>
  tile.parallel [32, 32] {
  ^bb0(%i: index, %j: index):
    %m = arith.muli %i, %c2 : index
    %n = arith.addi %m, %c1 : index
    %u = arith.muli %j, %c2 : index
    %v = arith.addi %u, %c1 : index
    %p = memref.load %x[%c2, %i, %j] : memref<4x32x32xf16, #tile.scope<shared>>
    memref.store %p, %y[%n, %u] : memref<64x64xf16, #tile.scope<shared>>
    %q = memref.load %x[%c3, %i, %j] : memref<4x32x32xf16, #tile.scope<shared>>
    memref.store %q, %y[%n, %v] : memref<64x64xf16, #tile.scope<shared>>
  }
  return
}
