// RUN: tilelang-npu opt %s -p collapse-copies | filecheck %s
// A buffer that the author placed in UB stays.
// CHECK:      tile.copy %x to %y
func.func @k(%X: memref<8x64xf32, #hivm.address_space<gm>>, %Y: memref<8x64xf32, #hivm.address_space<gm>>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %zero = arith.constant 0.0 : f32
  %x = tile.alloc "x" : memref<8x64xf32, #tile.scope<shared>>
  %y = tile.alloc "y" : memref<8x64xf32, #hivm.address_space<ub>>
  tile.copy %X to %x : memref<8x64xf32, #hivm.address_space<gm>> to memref<8x64xf32, #tile.scope<shared>>
  tile.copy %x to %y : memref<8x64xf32, #tile.scope<shared>> to memref<8x64xf32, #hivm.address_space<ub>>
  tile.elementwise "exp" ins(%y : memref<8x64xf32, #hivm.address_space<ub>>) outs(%y : memref<8x64xf32, #hivm.address_space<ub>>)
  tile.copy %y to %Y : memref<8x64xf32, #hivm.address_space<ub>> to memref<8x64xf32, #hivm.address_space<gm>>
  return
}
