// RUN: tilelang-npu opt %s -p assign-cores,own-workspaces | filecheck %s
// Two loops fill the block's part of %w by tiles, two tiles in each iteration of the inner loop: all of it is written before
// the Vector core reads it, sixteen rows at a time. The last columns of %z are not written, so their reads get data of the
// previous iteration.
// CHECK:     tile.alloc "w" : memref<1x32x32xf32, #hivm.address_space<gm>>
// CHECK-NOT: tile.alloc "z"
// CHECK-NOT: tile.region %w[
// CHECK:     tile.region %z[
func.func @k(%w: memref<4x32x32xf32, #hivm.address_space<gm>> {tile.scratch, tile.workspace}, %z: memref<4x32x32xf32, #hivm.address_space<gm>> {tile.scratch, tile.workspace}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %c16 = arith.constant 16 : index
  %true = arith.constant true
  tile.launch(%c4) sub_blocks 1 : i64 {
  ^bb0(%block: index):
    %q = tile.alloc "q" : memref<16x16xf32, #hivm.address_space<cbuf>>
    %c = tile.alloc "c" : memref<16x16xf32, #hivm.address_space<cc>>
    %h = tile.alloc "h" : memref<16x8xf32, #hivm.address_space<cc>>
    %x = tile.alloc "x" : memref<16x32xf32, #hivm.address_space<ub>>
    scf.for %i = %c0 to %c8 step %c1 {
      scf.for %j = %c0 to %c2 step %c1 {
        %column = arith.muli %j, %c16 : index
        tile.gemm %q, %q into %c init %true : memref<16x16xf32, #hivm.address_space<cbuf>>, memref<16x16xf32, #hivm.address_space<cbuf>> into memref<16x16xf32, #hivm.address_space<cc>>
        %top = tile.region %w[%block, 0, %column] [1, 16, 16] keep [1, 2] : memref<4x32x32xf32, #hivm.address_space<gm>> to memref<16x16xf32, strided<[32, 1], offset: ?>, #hivm.address_space<gm>>
        tile.copy %c to %top : memref<16x16xf32, #hivm.address_space<cc>> to memref<16x16xf32, strided<[32, 1], offset: ?>, #hivm.address_space<gm>>
        %low = tile.region %w[%block, 16, %column] [1, 16, 16] keep [1, 2] : memref<4x32x32xf32, #hivm.address_space<gm>> to memref<16x16xf32, strided<[32, 1], offset: ?>, #hivm.address_space<gm>>
        tile.copy %c to %low : memref<16x16xf32, #hivm.address_space<cc>> to memref<16x16xf32, strided<[32, 1], offset: ?>, #hivm.address_space<gm>>
        scf.for %r = %c0 to %c2 step %c1 {
          %line = arith.muli %r, %c16 : index
          %part = tile.region %z[%block, %line, %column] [1, 16, 8] keep [1, 2] : memref<4x32x32xf32, #hivm.address_space<gm>> to memref<16x8xf32, strided<[32, 1], offset: ?>, #hivm.address_space<gm>>
          tile.copy %h to %part : memref<16x8xf32, #hivm.address_space<cc>> to memref<16x8xf32, strided<[32, 1], offset: ?>, #hivm.address_space<gm>>
        }
      }
      scf.for %r = %c0 to %c2 step %c1 {
        %line = arith.muli %r, %c16 : index
        %from = tile.region %w[%block, %line, 0] [1, 16, 32] keep [1, 2] : memref<4x32x32xf32, #hivm.address_space<gm>> to memref<16x32xf32, strided<[32, 1], offset: ?>, #hivm.address_space<gm>>
        tile.copy %from to %x : memref<16x32xf32, strided<[32, 1], offset: ?>, #hivm.address_space<gm>> to memref<16x32xf32, #hivm.address_space<ub>>
        %other = tile.region %z[%block, %line, 0] [1, 16, 32] keep [1, 2] : memref<4x32x32xf32, #hivm.address_space<gm>> to memref<16x32xf32, strided<[32, 1], offset: ?>, #hivm.address_space<gm>>
        tile.copy %other to %x : memref<16x32xf32, strided<[32, 1], offset: ?>, #hivm.address_space<gm>> to memref<16x32xf32, #hivm.address_space<ub>>
      }
    } {tile.num_stages = 2 : i64}
  }
  return
}
