// RUN: tilelang-npu opt %s -p vectorise-parallel | filecheck %s
// y[i, j + 1] is not aligned to a block: the result is computed in a temporary, and merged with the elements that keep their
// values.
// CHECK:      tile.elementwise "exp" ins(%x : {{.*}}) outs(%[[TILE:.*]] : memref<8x62xf32
// CHECK:      tile.call "arange" {{.*}} outs(%[[AT:.*]] : memref<64xi32
// CHECK:      tile.elementwise "max" ins(%[[AT]], {{.*}}) outs(%[[IN:.*]] : memref<64xi32
// CHECK:      tile.elementwise "min" ins(%[[IN]], {{.*}}) outs(%[[IN]] :
// CHECK:      tile.elementwise "compare" ins(%[[AT]], %[[IN]] : {{.*}}) outs(%[[OURS:.*]] : memref<64xi1
// CHECK:      scf.for
// CHECK:        %[[ROW:.*]] = tile.region %y[%{{.*}}, 0] [1, 64]
// CHECK:        tile.call "gather" {{.*}} outs(%[[MOVED:.*]] : memref<64xf32
// CHECK-NEXT:   tile.elementwise "select" ins(%[[OURS]], %[[MOVED]], %[[ROW]] : {{.*}}) outs(%[[ROW]] :
func.func @k() {
  %c1 = arith.constant 1 : index
  %x = tile.alloc "x" : memref<8x62xf32, #tile.scope<shared>>
  %y = tile.alloc "y" : memref<8x64xf32, #tile.scope<shared>>
  tile.parallel [8, 62] {
  ^bb0(%i: index, %j: index):
    %a = memref.load %x[%i, %j] : memref<8x62xf32, #tile.scope<shared>>
    %e = math.exp %a : f32
    %n = arith.addi %j, %c1 : index
    memref.store %e, %y[%i, %n] : memref<8x64xf32, #tile.scope<shared>>
  }
  return
}
