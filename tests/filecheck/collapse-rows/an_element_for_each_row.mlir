// RUN: tilelang-npu opt %s -p collapse-rows | filecheck %s
// One instruction broadcasts elements along the rows: the elements may be in a row or a column, in a slot or a whole buffer.
// CHECK-LABEL: @of_a_line
// CHECK-NOT:   scf.for
// CHECK:       %[[COLUMN:.*]] = tile.view %m {{.*}} to memref<16x1xf32, strided<[1, 1]
// CHECK-NEXT:  tile.elementwise "sub" ins(%x, %[[COLUMN]] : {{.*}}) outs(%x : memref<16x64xf32
// CHECK-NEXT:  return
// CHECK-LABEL: @of_a_column
// CHECK-NOT:   scf.for
// CHECK:       %[[COLUMN:.*]] = tile.region %m[2, 0] [8, 1] keep [0, 1]
// CHECK:       tile.elementwise "mul" ins(%[[COLUMN]], {{.*}}) outs({{.*}} : memref<8x64xf32
// CHECK:       tile.elementwise "exp"
// CHECK-NEXT:  return
func.func @of_a_line() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %x = tile.alloc "x" : memref<16x64xf32, #hivm.address_space<ub>>
  %m = tile.alloc "m" : memref<16xf32, #hivm.address_space<ub>>
  scf.for %r = %c0 to %c16 step %c1 {
    %a = tile.region %x[%r, 0] [1, 64] keep [1] : memref<16x64xf32, #hivm.address_space<ub>> to memref<64xf32, strided<[1], offset: ?>, #hivm.address_space<ub>>
    %v = memref.load %m[%r] : memref<16xf32, #hivm.address_space<ub>>
    %b = tile.region %x[%r, 0] [1, 64] keep [1] : memref<16x64xf32, #hivm.address_space<ub>> to memref<64xf32, strided<[1], offset: ?>, #hivm.address_space<ub>>
    tile.elementwise "sub" ins(%a, %v : memref<64xf32, strided<[1], offset: ?>, #hivm.address_space<ub>>, f32) outs(%b : memref<64xf32, strided<[1], offset: ?>, #hivm.address_space<ub>>)
  }
  return
}
func.func @of_a_column() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %c8 = arith.constant 8 : index
  %c2 = arith.constant 2 : index
  %x = tile.alloc "x" : memref<16x64xf32, #hivm.address_space<ub>>
  %m = tile.alloc "m" : memref<16x1xf32, #hivm.address_space<ub>>
  scf.for %r = %c0 to %c8 step %c1 {
    %t = arith.addi %r, %c2 : index
    %a = tile.region %x[%r, 0] [1, 64] keep [1] : memref<16x64xf32, #hivm.address_space<ub>> to memref<64xf32, strided<[1], offset: ?>, #hivm.address_space<ub>>
    %v = memref.load %m[%t, %c0] : memref<16x1xf32, #hivm.address_space<ub>>
    %b = tile.region %x[%r, 0] [1, 64] keep [1] : memref<16x64xf32, #hivm.address_space<ub>> to memref<64xf32, strided<[1], offset: ?>, #hivm.address_space<ub>>
    tile.elementwise "mul" ins(%v, %a : f32, memref<64xf32, strided<[1], offset: ?>, #hivm.address_space<ub>>) outs(%b : memref<64xf32, strided<[1], offset: ?>, #hivm.address_space<ub>>)
    tile.elementwise "exp" ins(%b : memref<64xf32, strided<[1], offset: ?>, #hivm.address_space<ub>>) outs(%b : memref<64xf32, strided<[1], offset: ?>, #hivm.address_space<ub>>)
  }
  return
}
