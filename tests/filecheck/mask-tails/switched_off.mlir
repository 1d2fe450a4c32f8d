// RUN: tilelang-npu opt %s -p 'mask-tails{mask_tails=false}' | filecheck %s
// Without the author's switch, reductions include padding.
// CHECK:      tile.reduce "reduce_max" ins(%x : memref<8x64xf32
func.func @k(%X: memref<10x64xf32, #hivm.address_space<gm>>, %i: index) {
  %x = tile.alloc "x" : memref<8x64xf32, #hivm.address_space<ub>>
  %m = tile.alloc "m" : memref<1x64xf32, #hivm.address_space<ub>>
  %part = tile.region %X[%i, 0] [8, 64] keep [0, 1] : memref<10x64xf32, #hivm.address_space<gm>> to memref<8x64xf32, strided<[64, 1], offset: ?>, #hivm.address_space<gm>>
  tile.copy %part to %x : memref<8x64xf32, strided<[64, 1], offset: ?>, #hivm.address_space<gm>> to memref<8x64xf32, #hivm.address_space<ub>>
  tile.reduce "reduce_max" ins(%x : memref<8x64xf32, #hivm.address_space<ub>>) outs(%m : memref<1x64xf32, #hivm.address_space<ub>>) dims = [0]
  return
}
