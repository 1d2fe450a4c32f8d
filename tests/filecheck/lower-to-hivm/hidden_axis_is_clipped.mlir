// RUN: tilelang-npu opt %s -p assign-cores,lower-to-hivm | filecheck %s
// 8 blocks each load the rows of one of 7 matrices. The last block has no matrix: it loads no rows, from a place inside the tensor.
// CHECK:      %[[OUTSIDE:.*]] = arith.cmpi slt, %{{.*}}, %c1 : index
// CHECK:      %[[ROWS:.*]] = arith.select %[[OUTSIDE]], %c0, %c16 : index
// CHECK:      %[[INSIDE:.*]] = arith.minsi %block, %c6 : index
// CHECK-NEXT: memref.subview %X[%[[INSIDE]], 0, 0] [1, %[[ROWS]], 64] [1, 1, 1]
// CHECK:      hivm.hir.load
func.func @k(%X: memref<7x16x64xf32, #hivm.address_space<gm>>) {
  %c8 = arith.constant 8 : index
  tile.launch(%c8) sub_blocks 1 : i64 {
  ^bb0(%block: index):
    %x = tile.alloc "x" : memref<16x64xf32, #hivm.address_space<ub>>
    %r = tile.region %X[%block, 0, 0] [1, 16, 64] keep [1, 2] : memref<7x16x64xf32, #hivm.address_space<gm>> to memref<16x64xf32, strided<[64, 1], offset: ?>, #hivm.address_space<gm>>
    tile.copy %r to %x : memref<16x64xf32, strided<[64, 1], offset: ?>, #hivm.address_space<gm>> to memref<16x64xf32, #hivm.address_space<ub>>
  }
  return
}
