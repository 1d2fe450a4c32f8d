// RUN: tilelang-npu opt %s -p 'mask-tails{mask_tails=true}' | filecheck %s
// A loop overwrites the loaded tile, so what is padding is not known after the loop.
// CHECK:      tile.reduce "reduce_max" ins(%x : memref<8x64xf32
func.func @k(%X: memref<10x64xf32, #hivm.address_space<gm>>, %i: index) {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %x = tile.alloc "x" : memref<8x64xf32, #hivm.address_space<ub>>
  %m = tile.alloc "m" : memref<1x64xf32, #hivm.address_space<ub>>
  %part = tile.region %X[%i, 0] [8, 64] keep [0, 1] : memref<10x64xf32, #hivm.address_space<gm>> to memref<8x64xf32, strided<[64, 1], offset: ?>, #hivm.address_space<gm>>
  tile.copy %part to %x : memref<8x64xf32, strided<[64, 1], offset: ?>, #hivm.address_space<gm>> to memref<8x64xf32, #hivm.address_space<ub>>
  scf.for %j = %c0 to %i step %c1 {
    tile.fill %zero into %x : f32 into memref<8x64xf32, #hivm.address_space<ub>>
  }
  tile.reduce "reduce_max" ins(%x : memref<8x64xf32, #hivm.address_space<ub>>) outs(%m : memref<1x64xf32, #hivm.address_space<ub>>) dims = [0]
  return
}
