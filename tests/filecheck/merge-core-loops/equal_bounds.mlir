// RUN: tilelang-npu opt %s -p merge-core-loops | filecheck %s
// Each loop has a bound of its own, computed by equal operations from the same operand: the loops become one.
// CHECK:         scf.for
// CHECK:         tile.copy %p to %a
// CHECK:         tile.copy %h to %p
// CHECK-NOT:     scf.for
func.func @k(%s: memref<32x32xf32, #hivm.address_space<gm>> {tile.scratch}, %p: memref<32x32xf16, #hivm.address_space<gm>> {tile.scratch}, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %a = tile.alloc "a" : memref<32x32xf16, #hivm.address_space<cbuf>>
  %c = tile.alloc "c" : memref<32x32xf32, #hivm.address_space<cc>>
  %u = tile.alloc "u" : memref<32x32xf32, #hivm.address_space<ub>>
  %h = tile.alloc "h" : memref<32x32xf16, #hivm.address_space<ub>>
  %first = arith.addi %n, %c4 : index
  %second = arith.addi %n, %c4 : index
  scf.for %k = %c0 to %first step %c1 {
    tile.copy %c to %s : memref<32x32xf32, #hivm.address_space<cc>> to memref<32x32xf32, #hivm.address_space<gm>>
    tile.copy %p to %a : memref<32x32xf16, #hivm.address_space<gm>> to memref<32x32xf16, #hivm.address_space<cbuf>>
  }
  scf.for %j = %c0 to %second step %c1 {
    tile.copy %s to %u : memref<32x32xf32, #hivm.address_space<gm>> to memref<32x32xf32, #hivm.address_space<ub>>
    tile.copy %h to %p : memref<32x32xf16, #hivm.address_space<ub>> to memref<32x32xf16, #hivm.address_space<gm>>
  }
  return
}
