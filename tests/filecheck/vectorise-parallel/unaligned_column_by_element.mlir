// RUN: tilelang-npu opt %s -p vectorise-parallel | filecheck %s
// A column that is not aligned to a block is broadcast along the rows: the scalar unit reads its elements, and the rest is
// vector work.
// CHECK:      %[[COLUMN:.*]] = tile.alloc "T.Parallel" : memref<8x1xf32
// CHECK:      scf.for %[[I:.*]] = %{{.*}} to
// CHECK:        %[[VALUE:.*]] = memref.load %x[%[[I]], %{{.*}}]
// CHECK:        memref.store %[[VALUE]], %[[COLUMN]][%[[I]], %{{.*}}]
// CHECK:      tile.elementwise "mul" ins(%x, %[[COLUMN]] : {{.*}}) outs(%y :
func.func @k() {
  %c3 = arith.constant 3 : index
  %x = tile.alloc "x" : memref<8x64xf32, #tile.scope<shared>>
  %y = tile.alloc "y" : memref<8x64xf32, #tile.scope<shared>>
  tile.parallel [8, 64] {
  ^bb0(%i: index, %j: index):
    %a = memref.load %x[%i, %j] : memref<8x64xf32, #tile.scope<shared>>
    %b = memref.load %x[%i, %c3] : memref<8x64xf32, #tile.scope<shared>>
    %d = arith.mulf %a, %b : f32
    memref.store %d, %y[%i, %j] : memref<8x64xf32, #tile.scope<shared>>
  }
  return
}
