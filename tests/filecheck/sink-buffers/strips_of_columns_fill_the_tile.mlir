// RUN: tilelang-npu opt %s -p sink-buffers | filecheck %s
// Two strips of columns fill the tile before it is read: it moves into the loop and gets slots. Two strips that leave out a
// column do not fill it.
// CHECK:      tile.alloc "y" : memref
// CHECK-NEXT: scf.for
// CHECK-NEXT:   tile.alloc "x" slots 2
func.func @k(%X: memref<8x64xf32, #hivm.address_space<gm>>, %Y: memref<8x64xf32, #hivm.address_space<gm>>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %zero = arith.constant 0.0 : f32
  %x = tile.alloc "x" : memref<8x64xf32, #hivm.address_space<ub>>
  %y = tile.alloc "y" : memref<8x64xf32, #hivm.address_space<ub>>
  scf.for %i = %c0 to %c4 step %c1 {
    %0 = tile.region %x[0, 0] [8, 32] keep [0, 1] : memref<8x64xf32, #hivm.address_space<ub>> to memref<8x32xf32, strided<[64, 1]>, #hivm.address_space<ub>>
    tile.fill %zero into %0 : f32 into memref<8x32xf32, strided<[64, 1]>, #hivm.address_space<ub>>
    %1 = tile.region %x[0, 32] [8, 32] keep [0, 1] : memref<8x64xf32, #hivm.address_space<ub>> to memref<8x32xf32, strided<[64, 1], offset: 32>, #hivm.address_space<ub>>
    tile.fill %zero into %1 : f32 into memref<8x32xf32, strided<[64, 1], offset: 32>, #hivm.address_space<ub>>
    tile.copy %x to %Y : memref<8x64xf32, #hivm.address_space<ub>> to memref<8x64xf32, #hivm.address_space<gm>>
    %2 = tile.region %y[0, 0] [8, 31] keep [0, 1] : memref<8x64xf32, #hivm.address_space<ub>> to memref<8x31xf32, strided<[64, 1]>, #hivm.address_space<ub>>
    tile.fill %zero into %2 : f32 into memref<8x31xf32, strided<[64, 1]>, #hivm.address_space<ub>>
    %3 = tile.region %y[0, 32] [8, 32] keep [0, 1] : memref<8x64xf32, #hivm.address_space<ub>> to memref<8x32xf32, strided<[64, 1], offset: 32>, #hivm.address_space<ub>>
    tile.fill %zero into %3 : f32 into memref<8x32xf32, strided<[64, 1], offset: 32>, #hivm.address_space<ub>>
    tile.copy %y to %Y : memref<8x64xf32, #hivm.address_space<ub>> to memref<8x64xf32, #hivm.address_space<gm>>
  } {tile.num_stages = 2 : i64}
  return
}
