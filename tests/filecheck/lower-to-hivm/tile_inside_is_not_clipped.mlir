// RUN: tilelang-npu opt %s -p assign-cores,lower-to-hivm | filecheck %s
// 8 blocks of 16 rows in 128 rows: bounds prove that every tile is within the tensor, so its size is constant and nothing is
// filled.
// CHECK-NOT: scf.if
// CHECK:     memref.subview %X[%{{.*}}, 0] [16, 64] [1, 1]
// CHECK:     hivm.hir.load
// CHECK-NOT: hivm.hir.vbrc
func.func @k(%X: memref<128x64xf32, #hivm.address_space<gm>>) {
  %c8 = arith.constant 8 : index
  tile.launch(%c8) sub_blocks 1 : i64 {
  ^bb0(%b: index):
    %c16 = arith.constant 16 : index
    %row = arith.muli %b, %c16 : index
    %x = tile.alloc "x" : memref<16x64xf32, #hivm.address_space<ub>>
    %r = tile.region %X[%row, 0] [16, 64] keep [0, 1] : memref<128x64xf32, #hivm.address_space<gm>> to memref<16x64xf32, strided<[64, 1], offset: ?>, #hivm.address_space<gm>>
    tile.copy %r to %x : memref<16x64xf32, strided<[64, 1], offset: ?>, #hivm.address_space<gm>> to memref<16x64xf32, #hivm.address_space<ub>>
  }
  return
}
