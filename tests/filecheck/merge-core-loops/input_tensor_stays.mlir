// RUN: tilelang-npu opt %s -p merge-core-loops | filecheck %s
// The tensor is the caller's, and each iteration accesses a separate part of it: it has values from the start, so the loops
// stay in sequence.
// CHECK-COUNT-2: scf.for
func.func @k(%p: memref<4x32xf16, #hivm.address_space<gm>>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %a = tile.alloc "a" : memref<32xf16, #hivm.address_space<cbuf>>
  %h = tile.alloc "h" : memref<32xf16, #hivm.address_space<ub>>
  scf.for %k = %c0 to %c4 step %c1 {
    %from = tile.region %p[%k, 0] [1, 32] keep [1] : memref<4x32xf16, #hivm.address_space<gm>> to memref<32xf16, strided<[1], offset: ?>, #hivm.address_space<gm>>
    tile.copy %from to %a : memref<32xf16, strided<[1], offset: ?>, #hivm.address_space<gm>> to memref<32xf16, #hivm.address_space<cbuf>>
  }
  scf.for %j = %c0 to %c4 step %c1 {
    %to = tile.region %p[%j, 0] [1, 32] keep [1] : memref<4x32xf16, #hivm.address_space<gm>> to memref<32xf16, strided<[1], offset: ?>, #hivm.address_space<gm>>
    tile.copy %h to %to : memref<32xf16, #hivm.address_space<ub>> to memref<32xf16, strided<[1], offset: ?>, #hivm.address_space<gm>>
  }
  return
}
