// RUN: tilelang-npu opt %s -p vectorise-parallel | filecheck %s
// x[i, 63 - j]: the gather indices count down along rows.
// CHECK:      %[[X:.*]] = tile.view %x : {{.*}} to memref<512xf32
// CHECK:      %[[FIRST:.*]] = arith.constant 63 : index
// CHECK-NEXT: %[[ROW:.*]] = arith.constant 64 : index
// CHECK-NEXT: %[[DOWN:.*]] = arith.constant -1 : index
// CHECK-NEXT: tile.call "arange" ins(%[[FIRST]], %[[ROW]], %[[DOWN]] : {{.*}}) outs(%[[AT:.*]] : memref<8x64xi32
// CHECK:      %[[NUMBERS:.*]] = tile.view %[[AT]] : {{.*}} to memref<512xi32
// CHECK:      tile.call "gather" ins(%[[X]], %[[NUMBERS]] :
// CHECK-NOT:  scf.for
func.func @k() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %c63 = arith.constant 63 : index
  %x = tile.alloc "x" : memref<8x64xf32, #tile.scope<shared>>
  %y = tile.alloc "y" : memref<8x64xf32, #tile.scope<shared>>
  tile.parallel [8, 64] {
  ^bb0(%i: index, %j: index):
    %m = arith.subi %c63, %j : index
    %p = memref.load %x[%i, %m] : memref<8x64xf32, #tile.scope<shared>>
    memref.store %p, %y[%i, %j] : memref<8x64xf32, #tile.scope<shared>>
  }
  return
}
