// RUN: tilelang-npu opt %s -p assign-cores,lower-to-hivm | filecheck %s
// Tiles of 64 columns in 120: the padding of the last tile starts within a block of 32 bytes, where no vector op can start.
// The whole tile is filled, before the load. The same holds if both rows and columns need padding.
// CHECK:      scf.if
// CHECK-NEXT:   hivm.hir.vbrc ins(%cst : f32) outs(%x
// CHECK:      hivm.hir.load
// CHECK-NOT:  vbrc
// CHECK:      scf.if
// CHECK-NEXT:   hivm.hir.vbrc ins(%cst : f32) outs(%y
// CHECK:      hivm.hir.load
// CHECK-NOT:  vbrc
func.func @k(%X: memref<16x120xf32, #hivm.address_space<gm>>, %Y: memref<24x120xf32, #hivm.address_space<gm>>) {
  %c2 = arith.constant 2 : index
  %c0 = arith.constant 0 : index
  tile.launch(%c2) sub_blocks 1 : i64 {
  ^bb0(%b: index):
    %c64 = arith.constant 64 : index
    %c16 = arith.constant 16 : index
    %column = arith.muli %b, %c64 : index
    %row = arith.muli %b, %c16 : index
    %x = tile.alloc "x" : memref<16x64xf32, #hivm.address_space<ub>>
    %r = tile.region %X[%c0, %column] [16, 64] keep [0, 1] : memref<16x120xf32, #hivm.address_space<gm>> to memref<16x64xf32, strided<[120, 1], offset: ?>, #hivm.address_space<gm>>
    tile.copy %r to %x : memref<16x64xf32, strided<[120, 1], offset: ?>, #hivm.address_space<gm>> to memref<16x64xf32, #hivm.address_space<ub>>
    %y = tile.alloc "y" : memref<16x64xf32, #hivm.address_space<ub>>
    %s = tile.region %Y[%row, %column] [16, 64] keep [0, 1] : memref<24x120xf32, #hivm.address_space<gm>> to memref<16x64xf32, strided<[120, 1], offset: ?>, #hivm.address_space<gm>>
    tile.copy %s to %y : memref<16x64xf32, strided<[120, 1], offset: ?>, #hivm.address_space<gm>> to memref<16x64xf32, #hivm.address_space<ub>>
  }
  return
}
