// RUN: tilelang-npu opt %s -p drop-dead-stores | filecheck %s
// A write that is possibly outside of its buffer is kept although it is overwritten, so that the run reports it: rows from 8 n on.
// Rows from 4 i on, for i below 2, are inside; rows of a tensor from a multiple of i on are clipped at the tensor's end.
// CHECK-LABEL: func.func @kept
// CHECK:       tile.fill
// CHECK:       tile.copy %X to %x
// CHECK-LABEL: func.func @removed
// CHECK-NOT:   tile.fill
// CHECK:       tile.copy %X to %x
// CHECK-NOT:   tile.copy %{{[0-9]+}} to %x
// CHECK:       tile.copy %X to %x
func.func @kept(%X: memref<8x64xf32, #hivm.address_space<gm>>, %Y: memref<8x64xf32, #hivm.address_space<gm>>, %n: index) {
  %c8 = arith.constant 8 : index
  %zero = arith.constant 0.0 : f32
  %x = tile.alloc "x" : memref<8x64xf32, #tile.scope<shared>>
  %row = arith.muli %n, %c8 : index
  %part = tile.region %x[%row, 0] [4, 64] keep [0, 1] : memref<8x64xf32, #tile.scope<shared>> to memref<4x64xf32, strided<[64, 1], offset: ?>, #tile.scope<shared>>
  tile.fill %zero into %part : f32 into memref<4x64xf32, strided<[64, 1], offset: ?>, #tile.scope<shared>>
  tile.copy %X to %x : memref<8x64xf32, #hivm.address_space<gm>> to memref<8x64xf32, #tile.scope<shared>>
  tile.copy %x to %Y : memref<8x64xf32, #tile.scope<shared>> to memref<8x64xf32, #hivm.address_space<gm>>
  return
}
func.func @removed(%X: memref<8x64xf32, #hivm.address_space<gm>>, %Y: memref<8x64xf32, #hivm.address_space<gm>>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %zero = arith.constant 0.0 : f32
  %x = tile.alloc "x" : memref<8x64xf32, #tile.scope<shared>>
  scf.for %i = %c0 to %c2 step %c1 {
    %row = arith.muli %i, %c4 : index
    %part = tile.region %x[%row, 0] [4, 64] keep [0, 1] : memref<8x64xf32, #tile.scope<shared>> to memref<4x64xf32, strided<[64, 1], offset: ?>, #tile.scope<shared>>
    tile.fill %zero into %part : f32 into memref<4x64xf32, strided<[64, 1], offset: ?>, #tile.scope<shared>>
    tile.copy %X to %x : memref<8x64xf32, #hivm.address_space<gm>> to memref<8x64xf32, #tile.scope<shared>>
    tile.copy %x to %Y : memref<8x64xf32, #tile.scope<shared>> to memref<8x64xf32, #hivm.address_space<gm>>
  }
  scf.for %i = %c0 to %n step %c1 {
    %row = arith.muli %i, %c4 : index
    %part = tile.region %X[%row, 0] [8, 64] keep [0, 1] : memref<8x64xf32, #hivm.address_space<gm>> to memref<8x64xf32, strided<[64, 1], offset: ?>, #hivm.address_space<gm>>
    tile.copy %part to %x : memref<8x64xf32, strided<[64, 1], offset: ?>, #hivm.address_space<gm>> to memref<8x64xf32, #tile.scope<shared>>
    tile.copy %X to %x : memref<8x64xf32, #hivm.address_space<gm>> to memref<8x64xf32, #tile.scope<shared>>
    tile.copy %x to %Y : memref<8x64xf32, #tile.scope<shared>> to memref<8x64xf32, #hivm.address_space<gm>>
  }
  return
}
