// RUN: tilelang-npu opt %s -p vectorise-parallel | filecheck %s
// x[i, j, 63 - k] for 3 x 64 x 64 points: one gather takes 4096 elements, so the outermost axis alone becomes a loop.
// CHECK:      tile.call "arange" {{.*}} outs(%[[AT:.*]] : memref<64x64xi32
// CHECK:      scf.for
// CHECK-NOT:  scf.for
// CHECK:        tile.elementwise "add" ins(%[[AT]], %{{.*}}) outs(%[[PLANE:.*]] : memref<64x64xi32
// CHECK:        %[[NUMBERS:.*]] = tile.view %[[PLANE]] : {{.*}} to memref<4096xi32
// CHECK:        tile.call "gather" ins(%{{.*}}, %[[NUMBERS]] : memref<12288xf16, {{.*}}) outs(%{{.*}} : memref<4096xf16
func.func @k() {
  %c63 = arith.constant 63 : index
  %x = tile.alloc "x" : memref<3x64x64xf16, #tile.scope<shared>>
  %y = tile.alloc "y" : memref<3x64x64xf16, #tile.scope<shared>>
  tile.parallel [3, 64, 64] {
  ^bb0(%i: index, %j: index, %k: index):
    %m = arith.subi %c63, %k : index
    %p = memref.load %x[%i, %j, %m] : memref<3x64x64xf16, #tile.scope<shared>>
    memref.store %p, %y[%i, %j, %k] : memref<3x64x64xf16, #tile.scope<shared>>
  }
  return
}
