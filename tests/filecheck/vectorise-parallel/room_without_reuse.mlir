// RUN: tilelang-npu opt %s -p vectorise-parallel{reuse=false} | filecheck %s
// Each gather needs 48 KiB of temporary tiles besides the 96 KiB of x, y and z. Without reuse of memory, those of the first loop
// stay taken: not all rows of the second loop have room at once.
// CHECK:      tile.call "gather" {{.*}} outs(%{{.*}} : memref<4096xf32
// CHECK:      tile.call "gather" {{.*}} outs(%{{.*}} : memref<3584xf32
// CHECK:      tile.call "gather" {{.*}} outs(%{{.*}} : memref<512xf32
func.func @k() {
  %c15 = arith.constant 15 : index
  %x = tile.alloc "x" : memref<256x16xf32, #tile.scope<shared>>
  %y = tile.alloc "y" : memref<256x16xf32, #tile.scope<shared>>
  %z = tile.alloc "z" : memref<64x256xf32, #tile.scope<shared>>
  tile.parallel [256, 16] {
  ^bb0(%i: index, %j: index):
    %m = arith.subi %c15, %j : index
    %p = memref.load %x[%i, %m] : memref<256x16xf32, #tile.scope<shared>>
    memref.store %p, %y[%i, %j] : memref<256x16xf32, #tile.scope<shared>>
  }
  tile.parallel [256, 16] {
  ^bb0(%i: index, %j: index):
    %m = arith.subi %c15, %j : index
    %p = memref.load %y[%i, %m] : memref<256x16xf32, #tile.scope<shared>>
    memref.store %p, %x[%i, %j] : memref<256x16xf32, #tile.scope<shared>>
  }
  return
}
