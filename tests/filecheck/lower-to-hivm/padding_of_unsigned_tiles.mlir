// RUN: tilelang-npu opt %s -p assign-cores,lower-to-hivm | filecheck %s
// The rest of a tile of unsigned integers is filled with the bits of the unsigned scalar, which a cast gives as they were computed.
// CHECK:      %[[BITS:.*]] = arith.fptoui %pad : f32 to i8
// CHECK-NOT:  unrealized_conversion_cast %{{.*}} : ui8 to i8
// CHECK:      hivm.hir.vbrc ins(%[[BITS]] : i8)
func.func @k(%X: memref<120x64xui8, #hivm.address_space<gm>>, %pad: f32) {
  %c8 = arith.constant 8 : index
  tile.launch(%c8) sub_blocks 1 : i64 {
  ^bb0(%block: index):
    %c16 = arith.constant 16 : index
    %row = arith.muli %block, %c16 : index
    %x = tile.alloc "x" : memref<16x64xui8, #hivm.address_space<ub>>
    %bits = arith.fptoui %pad : f32 to i8
    %value = builtin.unrealized_conversion_cast %bits : i8 to ui8
    %r = tile.region %X[%row, 0] [16, 64] keep [0, 1] : memref<120x64xui8, #hivm.address_space<gm>> to memref<16x64xui8, strided<[64, 1], offset: ?>, #hivm.address_space<gm>>
    tile.copy %r to %x pad %value : ui8 : memref<16x64xui8, strided<[64, 1], offset: ?>, #hivm.address_space<gm>> to memref<16x64xui8, #hivm.address_space<ub>>
  }
  return
}
