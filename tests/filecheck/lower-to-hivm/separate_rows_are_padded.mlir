// RUN: tilelang-npu opt %s -p assign-cores,lower-to-hivm | filecheck %s
// Some rows of 10 elements, of a buffer that no copy from GM fills: they start at blocks of 32 bytes, 16 elements apart.
// CHECK:  memref.alloc() : memref<8x16xf32, #hivm.address_space<ub>>
// CHECK:  strided<[16, 1]
func.func @k(%O: memref<16xf32, #hivm.address_space<gm>>) {
  %c1 = arith.constant 1 : index
  %one = arith.constant 1.0 : f32
  tile.launch(%c1) sub_blocks 1 : i64 {
  ^bb0(%blk: index):
    %x = tile.alloc "x" : memref<8x10xf32, #hivm.address_space<ub>>
    %y = tile.alloc "y" : memref<16xf32, #hivm.address_space<ub>>
    tile.fill %one into %x : f32 into memref<8x10xf32, #hivm.address_space<ub>>
    %some = tile.region %x[1, 0] [3, 6] keep [0, 1] : memref<8x10xf32, #hivm.address_space<ub>> to memref<3x6xf32, strided<[10, 1], offset: 10>, #hivm.address_space<ub>>
    tile.fill %one into %some : f32 into memref<3x6xf32, strided<[10, 1], offset: 10>, #hivm.address_space<ub>>
    tile.fill %one into %y : f32 into memref<16xf32, #hivm.address_space<ub>>
    tile.copy %y to %O : memref<16xf32, #hivm.address_space<ub>> to memref<16xf32, #hivm.address_space<gm>>
  }
  return
}
