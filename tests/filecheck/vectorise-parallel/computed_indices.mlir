// RUN: tilelang-npu opt %s -p vectorise-parallel | filecheck %s
// x[i // 2, j // 2]: the vector unit also computes the indices, 32 in a row: i // 2 of a column and j // 2 of a row.
// CHECK:      tile.elementwise "bitwise_rshift" {{.*}} outs(%[[I:.*]] : memref<63x1xi32
// CHECK:      %[[BY:.*]] = arith.constant 32 : i32
// CHECK:      tile.elementwise "mul" ins(%[[I]], %[[BY]] : {{.*}}) outs(%[[ROW:.*]] : memref<63x1xi32
// CHECK-NEXT: tile.elementwise "add" ins(%[[AT:.*]], %[[ROW]] : {{.*}}) outs(%[[AT]] :
// CHECK:      tile.elementwise "bitwise_rshift" {{.*}} outs(%[[J:.*]] : memref<1x63xi32
// CHECK-NEXT: tile.elementwise "add" ins(%[[AT]], %[[J]] : {{.*}}) outs(%[[AT]] :
// CHECK:      tile.call "gather"
// CHECK-NOT:  scf.for
func.func @k() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %c63 = arith.constant 63 : index
  %x = tile.alloc "x" : memref<32x32xf16, #tile.scope<shared>>
  %y = tile.alloc "y" : memref<64x64xf16, #tile.scope<shared>>
  tile.parallel [63, 63] {
  ^bb0(%i: index, %j: index):
    %m = arith.divui %i, %c2 : index
    %n = arith.divui %j, %c2 : index
    %p = memref.load %x[%m, %n] : memref<32x32xf16, #tile.scope<shared>>
    memref.store %p, %y[%i, %j] : memref<64x64xf16, #tile.scope<shared>>
  }
  return
}
