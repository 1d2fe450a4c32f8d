// RUN: tilelang-npu opt %s -p drop-dead-stores | filecheck %s
// Both clears are overwritten before a read, so both are dropped.
// CHECK-NOT:  tile.fill
// CHECK:      tile.copy %X to %x
func.func @k(%X: memref<8x64xf32, #hivm.address_space<gm>>, %Y: memref<8x64xf32, #hivm.address_space<gm>>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %zero = arith.constant 0.0 : f32
  %x = tile.alloc "x" : memref<8x64xf32, #tile.scope<shared>>
  %y = tile.alloc "y" : memref<8x64xf32, #tile.scope<fragment>>
  tile.fill %zero into %x : f32 into memref<8x64xf32, #tile.scope<shared>>
  tile.fill %zero into %x : f32 into memref<8x64xf32, #tile.scope<shared>>
  tile.copy %X to %x : memref<8x64xf32, #hivm.address_space<gm>> to memref<8x64xf32, #tile.scope<shared>>
  tile.copy %x to %Y : memref<8x64xf32, #tile.scope<shared>> to memref<8x64xf32, #hivm.address_space<gm>>
  return
}
