// RUN: tilelang-npu opt %s -p vectorise-parallel | filecheck %s
// s[i, j] = s[i - 1, j] + g[i, j] in a loop over i: a read of another row is no dependence between points of the loop over
// j. The same holds for a row that is known only at run time if the column is the point's.
// CHECK-LABEL: @above
// CHECK:       scf.for
// CHECK:         tile.elementwise "add"
// CHECK-NOT:   memref.load
// CHECK-LABEL: @any
// CHECK:       tile.elementwise "add"
// CHECK-NOT:   memref.load
// Consecutive rows are disjoint, also with different columns.
// CHECK-LABEL: @turn
// CHECK:       scf.for
// CHECK:         tile.elementwise "add"
// CHECK-NOT:   memref.load
// With different columns, rows that may be the same are read after they are written.
// CHECK-LABEL: @shifted
// CHECK:       memref.load
// CHECK:       memref.store
func.func @above(%s: memref<8x64xf32, #hivm.address_space<ub>>, %g: memref<8x64xf32, #hivm.address_space<ub>>) {
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  scf.for %i = %c1 to %c8 step %c1 {
    %above = arith.subi %i, %c1 : index
    tile.parallel [64] {
    ^bb0(%j: index):
      %x = memref.load %s[%above, %j] : memref<8x64xf32, #hivm.address_space<ub>>
      %y = memref.load %g[%i, %j] : memref<8x64xf32, #hivm.address_space<ub>>
      %z = arith.addf %x, %y : f32
      memref.store %z, %s[%i, %j] : memref<8x64xf32, #hivm.address_space<ub>>
    }
  }
  return
}
func.func @any(%s: memref<8x64xf32, #hivm.address_space<ub>>, %a: index, %b: index) {
  tile.parallel [64] {
  ^bb0(%j: index):
    %x = memref.load %s[%a, %j] : memref<8x64xf32, #hivm.address_space<ub>>
    %z = arith.addf %x, %x : f32
    memref.store %z, %s[%b, %j] : memref<8x64xf32, #hivm.address_space<ub>>
  }
  return
}
func.func @turn(%s: memref<2x64xf32, #hivm.address_space<ub>>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c8 = arith.constant 8 : index
  scf.for %i = %c0 to %c8 step %c1 {
    %next = arith.addi %i, %c1 : index
    %here = arith.remui %i, %c2 : index
    %there = arith.remui %next, %c2 : index
    tile.parallel [56] {
    ^bb0(%j: index):
      %k = arith.addi %j, %c8 : index
      %x = memref.load %s[%there, %k] : memref<2x64xf32, #hivm.address_space<ub>>
      %z = arith.addf %x, %x : f32
      memref.store %z, %s[%here, %j] : memref<2x64xf32, #hivm.address_space<ub>>
    }
  }
  return
}
func.func @shifted(%s: memref<8x64xf32, #hivm.address_space<ub>>, %a: index, %b: index) {
  %c8 = arith.constant 8 : index
  tile.parallel [56] {
  ^bb0(%j: index):
    %k = arith.addi %j, %c8 : index
    %x = memref.load %s[%a, %j] : memref<8x64xf32, #hivm.address_space<ub>>
    memref.store %x, %s[%b, %k] : memref<8x64xf32, #hivm.address_space<ub>>
  }
  return
}
