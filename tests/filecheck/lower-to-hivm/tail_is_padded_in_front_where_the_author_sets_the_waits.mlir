// RUN: tilelang-npu opt %s -p 'assign-cores,lower-to-hivm{synchronise=false}' | filecheck %s
// What the author's event MTE2 -> V waits for is the load, the last thing that the copy becomes. Filled behind it, the rows below
// would race with what reads the tile, and the wait between load and fill would hide an event that the author forgot.
// CHECK:      %[[PART:.*]] = arith.cmpi slt, %[[ROWS:.*]], %c16 : index
// CHECK-NEXT: scf.if %[[PART]] {
// CHECK-NEXT:   hivm.hir.vbrc ins(%cst : f32) outs(%x
// CHECK:      memref.subview %x[0, 0] [%[[ROWS]], 64] [1, 1]
// CHECK-NEXT: hivm.hir.load
// CHECK-NOT:  vbrc
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
