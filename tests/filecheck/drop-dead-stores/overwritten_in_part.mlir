// RUN: tilelang-npu opt %s -p drop-dead-stores | filecheck %s
// Half of the stored data is read later, so the store stays.
// CHECK:      tile.copy %X to %x
// CHECK:      tile.fill
func.func @k(%X: memref<8x64xf32, #hivm.address_space<gm>>, %Y: memref<8x64xf32, #hivm.address_space<gm>>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %zero = arith.constant 0.0 : f32
  %x = tile.alloc "x" : memref<8x64xf32, #tile.scope<shared>>
  %y = tile.alloc "y" : memref<8x64xf32, #tile.scope<fragment>>
  tile.copy %X to %x : memref<8x64xf32, #hivm.address_space<gm>> to memref<8x64xf32, #tile.scope<shared>>
  %row = tile.region %x[0, 0] [4, 64] keep [0, 1] : memref<8x64xf32, #tile.scope<shared>> to memref<4x64xf32, strided<[64, 1], offset: 0>, #tile.scope<shared>>
  tile.fill %zero into %row : f32 into memref<4x64xf32, strided<[64, 1], offset: 0>, #tile.scope<shared>>
  tile.copy %x to %Y : memref<8x64xf32, #tile.scope<shared>> to memref<8x64xf32, #hivm.address_space<gm>>
  return
}
