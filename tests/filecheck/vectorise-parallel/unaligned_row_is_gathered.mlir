// RUN: tilelang-npu opt %s -p vectorise-parallel | filecheck %s
// x[i, j + 1] is not aligned to a block of UB: each row is gathered from the blocks that contain it to an aligned tile.
// CHECK:      %[[TILE:.*]] = tile.alloc "T.Parallel" : memref<8x62xf32
// CHECK:      tile.call "arange" {{.*}} outs(%[[AT:.*]] : memref<62xi32
// CHECK:      scf.for %[[I:.*]] = %{{.*}} to
// CHECK-NEXT:   %[[ROW:.*]] = tile.region %x[%[[I]], 0] [1, 64] keep
// CHECK-NEXT:   %[[HERE:.*]] = tile.region %[[TILE]][%[[I]], 0] [1, 62] keep
// CHECK-NEXT:   tile.call "gather" ins(%[[ROW]], %[[AT]] : {{.*}}) outs(%[[HERE]] :
// CHECK:      tile.elementwise "exp" ins(%[[TILE]] :
func.func @k() {
  %c1 = arith.constant 1 : index
  %x = tile.alloc "x" : memref<8x64xf32, #tile.scope<shared>>
  %y = tile.alloc "y" : memref<8x62xf32, #tile.scope<shared>>
  tile.parallel [8, 62] {
  ^bb0(%i: index, %j: index):
    %n = arith.addi %j, %c1 : index
    %a = memref.load %x[%i, %n] : memref<8x64xf32, #tile.scope<shared>>
    %e = math.exp %a : f32
    memref.store %e, %y[%i, %j] : memref<8x62xf32, #tile.scope<shared>>
  }
  return
}
