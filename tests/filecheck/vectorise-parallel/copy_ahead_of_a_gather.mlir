// RUN: tilelang-npu opt %s -p vectorise-parallel | filecheck %s
// x[at[i], 2] with rows of 20 bytes: the rows are copied to rows of 32 bytes first. That takes time for each row; with the gather
// it takes less time than 64 points one by one, and more time than 8 points.
// CHECK:      %[[PADDED:.*]] = tile.alloc "T.Parallel" : memref<512x8xf32
// CHECK:      tile.copy %x to
// CHECK:      %[[X:.*]] = tile.view %[[PADDED]] : {{.*}} to memref<4096xf32
// CHECK:      tile.call "gather" ins(%[[X]], %{{.*}} : {{.*}}) outs(%{{.*}} : memref<64xf32
// CHECK:      scf.for
// CHECK:        memref.load %x
func.func @k() {
  %c2 = arith.constant 2 : index
  %x = tile.alloc "x" : memref<512x5xf32, #tile.scope<shared>>
  %at = tile.alloc "at" : memref<64xi32, #tile.scope<shared>>
  %y = tile.alloc "y" : memref<64xf32, #tile.scope<shared>>
  tile.parallel [64] {
  ^bb0(%i: index):
    %n = memref.load %at[%i] : memref<64xi32, #tile.scope<shared>>
    %m = arith.index_cast %n : i32 to index
    %p = memref.load %x[%m, %c2] : memref<512x5xf32, #tile.scope<shared>>
    memref.store %p, %y[%i] : memref<64xf32, #tile.scope<shared>>
  }
  tile.parallel [8] {
  ^bb0(%i: index):
    %n = memref.load %at[%i] : memref<64xi32, #tile.scope<shared>>
    %m = arith.index_cast %n : i32 to index
    %p = memref.load %x[%m, %c2] : memref<512x5xf32, #tile.scope<shared>>
    memref.store %p, %y[%i] : memref<64xf32, #tile.scope<shared>>
  }
  return
}
