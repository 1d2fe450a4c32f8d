// RUN: tilelang-npu opt %s -p assign-cores,own-workspaces | filecheck %s
// Each core reads in the block's row of %w only data that the other core wrote in the same iteration: the row becomes a
// workspace of the compiler.
// CHECK:      func.func @k(%A: {{.*}}, %w: memref<4x16x16xf32, #hivm.address_space<gm>>
// CHECK:      [[w:%[^ ]+]] = tile.alloc "w" : memref<1x16x16xf32, #hivm.address_space<gm>>
// CHECK-NOT:  tile.region %w[
// CHECK:      tile.region [[w]][0, 0, 0] [1, 16, 16]
// CHECK:      tile.region [[w]][0, 0, 0] [1, 8, 16]
func.func @k(%A: memref<128x16xf32, #hivm.address_space<gm>>, %w: memref<4x16x16xf32, #hivm.address_space<gm>> {tile.scratch, tile.workspace}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %true = arith.constant true
  tile.launch(%c8) sub_blocks 1 : i64 {
  ^bb0(%block: index):
    %q = tile.alloc "q" : memref<16x16xf32, #hivm.address_space<cbuf>>
    %c = tile.alloc "c" : memref<16x16xf32, #hivm.address_space<cc>>
    %x = tile.alloc "x" : memref<8x16xf32, #hivm.address_space<ub>>
    scf.for %i = %c0 to %c8 step %c1 {
      tile.gemm %q, %q into %c init %true : memref<16x16xf32, #hivm.address_space<cbuf>>, memref<16x16xf32, #hivm.address_space<cbuf>> into memref<16x16xf32, #hivm.address_space<cc>>
      %to = tile.region %w[%block, 0, 0] [1, 16, 16] keep [1, 2] : memref<4x16x16xf32, #hivm.address_space<gm>> to memref<16x16xf32, strided<[16, 1], offset: ?>, #hivm.address_space<gm>>
      tile.copy %c to %to : memref<16x16xf32, #hivm.address_space<cc>> to memref<16x16xf32, strided<[16, 1], offset: ?>, #hivm.address_space<gm>>
      %from = tile.region %w[%block, 0, 0] [1, 8, 16] keep [1, 2] : memref<4x16x16xf32, #hivm.address_space<gm>> to memref<8x16xf32, strided<[16, 1], offset: ?>, #hivm.address_space<gm>>
      tile.copy %from to %x : memref<8x16xf32, strided<[16, 1], offset: ?>, #hivm.address_space<gm>> to memref<8x16xf32, #hivm.address_space<ub>>
    } {tile.num_stages = 2 : i64}
  }
  return
}
