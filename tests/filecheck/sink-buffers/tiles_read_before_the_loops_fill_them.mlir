// RUN: tilelang-npu opt %s -p assign-cores,sink-buffers | filecheck %s
// The inner loop writes two rows of %x in each iteration and reads all eight: the later rows have the values of the previous
// iteration. Of %y it reads only rows that it wrote.
// CHECK:     tile.alloc "x" :
// CHECK:     scf.for
// CHECK:     tile.alloc "y" slots 2
func.func @k(%X: memref<8x64xf32, #hivm.address_space<gm>>, %Y: memref<8x64xf32, #hivm.address_space<gm>>) attributes {hacc.entry} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %x = tile.alloc "x" : memref<8x64xf32, #hivm.address_space<ub>>
  %y = tile.alloc "y" : memref<8x64xf32, #hivm.address_space<ub>>
  scf.for %i = %c0 to %c4 step %c1 {
    scf.for %r = %c0 to %c4 step %c1 {
      %line = arith.muli %r, %c2 : index
      %from = tile.region %X[%line, 0] [2, 64] keep [0, 1] : memref<8x64xf32, #hivm.address_space<gm>> to memref<2x64xf32, strided<[64, 1], offset: ?>, #hivm.address_space<gm>>
      %rows = tile.region %x[%line, 0] [2, 64] keep [0, 1] : memref<8x64xf32, #hivm.address_space<ub>> to memref<2x64xf32, strided<[64, 1], offset: ?>, #hivm.address_space<ub>>
      tile.copy %from to %rows : memref<2x64xf32, strided<[64, 1], offset: ?>, #hivm.address_space<gm>> to memref<2x64xf32, strided<[64, 1], offset: ?>, #hivm.address_space<ub>>
      tile.copy %x to %Y : memref<8x64xf32, #hivm.address_space<ub>> to memref<8x64xf32, #hivm.address_space<gm>>
    }
    scf.for %r = %c0 to %c4 step %c1 {
      %line = arith.muli %r, %c2 : index
      %from = tile.region %X[%line, 0] [2, 64] keep [0, 1] : memref<8x64xf32, #hivm.address_space<gm>> to memref<2x64xf32, strided<[64, 1], offset: ?>, #hivm.address_space<gm>>
      %rows = tile.region %y[%line, 0] [2, 64] keep [0, 1] : memref<8x64xf32, #hivm.address_space<ub>> to memref<2x64xf32, strided<[64, 1], offset: ?>, #hivm.address_space<ub>>
      tile.copy %from to %rows : memref<2x64xf32, strided<[64, 1], offset: ?>, #hivm.address_space<gm>> to memref<2x64xf32, strided<[64, 1], offset: ?>, #hivm.address_space<ub>>
      %to = tile.region %Y[%line, 0] [2, 64] keep [0, 1] : memref<8x64xf32, #hivm.address_space<gm>> to memref<2x64xf32, strided<[64, 1], offset: ?>, #hivm.address_space<gm>>
      tile.copy %rows to %to : memref<2x64xf32, strided<[64, 1], offset: ?>, #hivm.address_space<ub>> to memref<2x64xf32, strided<[64, 1], offset: ?>, #hivm.address_space<gm>>
    }
    tile.copy %y to %Y : memref<8x64xf32, #hivm.address_space<ub>> to memref<8x64xf32, #hivm.address_space<gm>>
  } {tile.num_stages = 2 : i64}
  return
}
