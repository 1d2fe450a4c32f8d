// RUN: tilelang-npu opt %s -p assign-cores,sink-buffers | filecheck %s
// Each iteration reads only the half that it wrote, on every path. The other buffer is also read where nothing was written.
// CHECK:      tile.alloc "y"
// CHECK:      scf.for
// CHECK-NEXT: tile.alloc "x"
func.func @k(%X: memref<16x16xf32, #hivm.address_space<gm>>, %Y: memref<16x16xf32, #hivm.address_space<gm>>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  tile.launch(%c1) sub_blocks 1 : i64 {
  ^bb0(%cid: index):
    %x = tile.alloc "x" : memref<2x16x16xf32, #hivm.address_space<ub>>
    %y = tile.alloc "y" : memref<2x16x16xf32, #hivm.address_space<ub>>
    scf.for %i = %c0 to %c4 step %c1 {
      %h = arith.remui %i, %c2 : index
      %g = arith.remui %i, %c2 : index
      %last = arith.cmpi eq, %i, %c1 : index
      scf.if %last {
        %a = tile.region %x[%h, 0, 0] [1, 16, 16] keep [1, 2] : memref<2x16x16xf32, #hivm.address_space<ub>> to memref<16x16xf32, strided<[16, 1], offset: ?>, #hivm.address_space<ub>>
        tile.copy %X to %a : memref<16x16xf32, #hivm.address_space<gm>> to memref<16x16xf32, strided<[16, 1], offset: ?>, #hivm.address_space<ub>>
      } else {
        %b = tile.region %x[%h, 0, 0] [1, 16, 16] keep [1, 2] : memref<2x16x16xf32, #hivm.address_space<ub>> to memref<16x16xf32, strided<[16, 1], offset: ?>, #hivm.address_space<ub>>
        tile.copy %Y to %b : memref<16x16xf32, #hivm.address_space<gm>> to memref<16x16xf32, strided<[16, 1], offset: ?>, #hivm.address_space<ub>>
      }
      %c = tile.region %x[%g, 0, 0] [1, 16, 16] keep [1, 2] : memref<2x16x16xf32, #hivm.address_space<ub>> to memref<16x16xf32, strided<[16, 1], offset: ?>, #hivm.address_space<ub>>
      tile.copy %c to %Y : memref<16x16xf32, strided<[16, 1], offset: ?>, #hivm.address_space<ub>> to memref<16x16xf32, #hivm.address_space<gm>>
      %d = tile.region %y[%h, 0, 0] [1, 16, 16] keep [1, 2] : memref<2x16x16xf32, #hivm.address_space<ub>> to memref<16x16xf32, strided<[16, 1], offset: ?>, #hivm.address_space<ub>>
      tile.copy %X to %d : memref<16x16xf32, #hivm.address_space<gm>> to memref<16x16xf32, strided<[16, 1], offset: ?>, #hivm.address_space<ub>>
      %e = tile.region %y[0, 0, 0] [1, 16, 16] keep [1, 2] : memref<2x16x16xf32, #hivm.address_space<ub>> to memref<16x16xf32, strided<[16, 1]>, #hivm.address_space<ub>>
      tile.copy %e to %Y : memref<16x16xf32, strided<[16, 1]>, #hivm.address_space<ub>> to memref<16x16xf32, #hivm.address_space<gm>>
    }
  }
  return
}
