// RUN: tilelang-npu opt %s -p assign-cores,lower-to-hivm | filecheck %s
// 8 blocks of 16 rows in 120 rows: the last tile is clipped to the rows of the tensor. The rows after them are filled after
// the load, so that the load does not wait for the Vector pipe.
// CHECK:      %[[PART:.*]] = arith.cmpi slt, %[[ROWS:.*]], %c16 : index
// CHECK-NEXT: %[[REST:.*]] = arith.subi %c16, %[[ROWS]] : index
// CHECK-NEXT: memref.subview %X[%{{.*}}, 0] [%[[ROWS]], 64] [1, 1]
// CHECK-NEXT: memref.subview %x[0, 0] [%[[ROWS]], 64] [1, 1]
// CHECK-NEXT: hivm.hir.load
// CHECK-NEXT: scf.if %[[PART]] {
// CHECK-NEXT:   memref.subview %x[%[[ROWS]], 0] [%[[REST]], 64] [1, 1]
// CHECK-NEXT:   hivm.hir.vbrc ins(%cst : f32) outs(%
func.func @k(%X: memref<120x64xf32, #hivm.address_space<gm>>) {
  %c8 = arith.constant 8 : index
  tile.launch(%c8) sub_blocks 1 : i64 {
  ^bb0(%b: index):
    %c16 = arith.constant 16 : index
    %row = arith.muli %b, %c16 : index
    %x = tile.alloc "x" : memref<16x64xf32, #hivm.address_space<ub>>
    %r = tile.region %X[%row, 0] [16, 64] keep [0, 1] : memref<120x64xf32, #hivm.address_space<gm>> to memref<16x64xf32, strided<[64, 1], offset: ?>, #hivm.address_space<gm>>
    tile.copy %r to %x : memref<16x64xf32, strided<[64, 1], offset: ?>, #hivm.address_space<gm>> to memref<16x64xf32, #hivm.address_space<ub>>
  }
  return
}
