// RUN: tilelang-npu opt %s -p assign-cores,own-workspaces | filecheck %s
// The call determines the number of blocks, but each block's part of %w is known. The two Vector cores fill it row by row,
// each the half that starts at vid * 16 // 2.
// CHECK:      [[w:%[^ ]+]] = tile.alloc "s" : memref<1x16x16xf16, #hivm.address_space<gm>>
// CHECK-NOT:  tile.region %s[
// CHECK:      tile.region [[w]][0, %{{.*}}, 0] [1, 1, 16]
// CHECK:      tile.region [[w]][0, 0, 0] [1, 16, 16]
func.func @k(%A: memref<16xf16, #hivm.address_space<gm>>, %w: memref<?xf16, #hivm.address_space<gm>> {tile.scratch, tile.workspace}, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c8 = arith.constant 8 : index
  %c16 = arith.constant 16 : index
  %true = arith.constant true
  %s = tile.tensor %w [%n, 16, 16] : memref<?xf16, #hivm.address_space<gm>> to memref<?x16x16xf16, #hivm.address_space<gm>>
  tile.launch(%n) sub_blocks 2 : i64 explicit {
  ^bb0(%block: index, %vid: index):
    %q = tile.alloc "q" : memref<16x16xf16, #hivm.address_space<cbuf>>
    %c = tile.alloc "c" : memref<16x16xf32, #hivm.address_space<cc>>
    %x = tile.alloc "x" : memref<16xf16, #hivm.address_space<ub>>
    scf.for %i = %c0 to %c8 step %c1 {
      scf.for %r = %c0 to %c8 step %c1 {
        %wide = arith.muli %vid, %c16 : index
        %half = arith.divui %wide, %c2 : index
        %row = arith.addi %r, %half : index
        tile.copy %A to %x : memref<16xf16, #hivm.address_space<gm>> to memref<16xf16, #hivm.address_space<ub>>
        %to = tile.region %s[%block, %row, 0] [1, 1, 16] keep [2] : memref<?x16x16xf16, #hivm.address_space<gm>> to memref<16xf16, strided<[1], offset: ?>, #hivm.address_space<gm>>
        tile.copy %x to %to : memref<16xf16, #hivm.address_space<ub>> to memref<16xf16, strided<[1], offset: ?>, #hivm.address_space<gm>>
      }
      %from = tile.region %s[%block, 0, 0] [1, 16, 16] keep [1, 2] : memref<?x16x16xf16, #hivm.address_space<gm>> to memref<16x16xf16, strided<[16, 1], offset: ?>, #hivm.address_space<gm>>
      tile.copy %from to %q : memref<16x16xf16, strided<[16, 1], offset: ?>, #hivm.address_space<gm>> to memref<16x16xf16, #hivm.address_space<cbuf>>
      tile.gemm %q, %q into %c init %true : memref<16x16xf16, #hivm.address_space<cbuf>>, memref<16x16xf16, #hivm.address_space<cbuf>> into memref<16x16xf32, #hivm.address_space<cc>>
    } {tile.num_stages = 2 : i64}
  }
  return
}
