// RUN: tilelang-npu opt %s -p assign-cores,sink-buffers | filecheck %s
// Neither loop reads a value that the other leaves in the tile: each gets a separate tile, with its number of slots.
// CHECK-NOT:  tile.alloc
// CHECK:      scf.for %i
// CHECK-NEXT:   tile.alloc "x" slots 2
// CHECK:      scf.for %j
// CHECK-NEXT:   %x_1 = tile.alloc "x" slots 3
// CHECK:        tile.region %x_1[
func.func @k(%X: memref<8x64xf32, #hivm.address_space<gm>>, %Y: memref<8x64xf32, #hivm.address_space<gm>>, %Z: memref<4x64xf32, #hivm.address_space<gm>>) attributes {hacc.entry} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %x = tile.alloc "x" : memref<8x64xf32, #hivm.address_space<ub>>
  scf.for %i = %c0 to %c4 step %c1 {
    tile.copy %X to %x : memref<8x64xf32, #hivm.address_space<gm>> to memref<8x64xf32, #hivm.address_space<ub>>
    tile.copy %x to %Y : memref<8x64xf32, #hivm.address_space<ub>> to memref<8x64xf32, #hivm.address_space<gm>>
  } {tile.num_stages = 2 : i64}
  scf.for %j = %c0 to %c4 step %c1 {
    tile.copy %X to %x : memref<8x64xf32, #hivm.address_space<gm>> to memref<8x64xf32, #hivm.address_space<ub>>
    %half = tile.region %x[0, 0] [4, 64] keep [0, 1] : memref<8x64xf32, #hivm.address_space<ub>> to memref<4x64xf32, strided<[64, 1]>, #hivm.address_space<ub>>
    tile.copy %half to %Z : memref<4x64xf32, strided<[64, 1]>, #hivm.address_space<ub>> to memref<4x64xf32, #hivm.address_space<gm>>
  } {tile.num_stages = 3 : i64}
  return
}
