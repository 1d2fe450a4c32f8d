// RUN: tilelang-npu opt %s -p collapse-rows | filecheck %s
// The loop stays if an iteration reads the row or an element that the previous iteration has written.
// CHECK-LABEL: @the_row_before
// CHECK:       scf.for
// CHECK-LABEL: @the_column_in_the_rows
// CHECK:       scf.for
func.func @the_row_before() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %c15 = arith.constant 15 : index
  %x = tile.alloc "x" : memref<16x64xf32, #hivm.address_space<ub>>
  %m = tile.alloc "m" : memref<16xf32, #hivm.address_space<ub>>
  scf.for %r = %c0 to %c15 step %c1 {
    %t = arith.addi %r, %c1 : index
    %a = tile.region %x[%r, 0] [1, 64] keep [1] : memref<16x64xf32, #hivm.address_space<ub>> to memref<64xf32, strided<[1], offset: ?>, #hivm.address_space<ub>>
    %v = memref.load %m[%r] : memref<16xf32, #hivm.address_space<ub>>
    %b = tile.region %x[%t, 0] [1, 64] keep [1] : memref<16x64xf32, #hivm.address_space<ub>> to memref<64xf32, strided<[1], offset: ?>, #hivm.address_space<ub>>
    tile.elementwise "sub" ins(%a, %v : memref<64xf32, strided<[1], offset: ?>, #hivm.address_space<ub>>, f32) outs(%b : memref<64xf32, strided<[1], offset: ?>, #hivm.address_space<ub>>)
  }
  return
}
func.func @the_column_in_the_rows() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %x = tile.alloc "x" : memref<16x64xf32, #hivm.address_space<ub>>
  %m = tile.alloc "m" : memref<16xf32, #hivm.address_space<ub>>
  scf.for %r = %c0 to %c16 step %c1 {
    %a = tile.region %x[%r, 0] [1, 64] keep [1] : memref<16x64xf32, #hivm.address_space<ub>> to memref<64xf32, strided<[1], offset: ?>, #hivm.address_space<ub>>
    %v = memref.load %x[%c0, %r] : memref<16x64xf32, #hivm.address_space<ub>>
    %b = tile.region %x[%r, 0] [1, 64] keep [1] : memref<16x64xf32, #hivm.address_space<ub>> to memref<64xf32, strided<[1], offset: ?>, #hivm.address_space<ub>>
    tile.elementwise "sub" ins(%a, %v : memref<64xf32, strided<[1], offset: ?>, #hivm.address_space<ub>>, f32) outs(%b : memref<64xf32, strided<[1], offset: ?>, #hivm.address_space<ub>>)
  }
  return
}
