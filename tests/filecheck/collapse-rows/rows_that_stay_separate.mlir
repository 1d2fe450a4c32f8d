// RUN: tilelang-npu opt %s -p collapse-rows | filecheck %s
// A loop over rows stays if the author synchronises in it, if it contains other operations, or if its trip count is unknown.
// CHECK-LABEL: @waits
// CHECK:       scf.for
// CHECK-LABEL: @stores
// CHECK:       scf.for
// CHECK-LABEL: @how_often
// CHECK:       scf.for
func.func @waits() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %x = tile.alloc "x" : memref<16x64xf32, #hivm.address_space<ub>>
  %m = tile.alloc "m" : memref<16xf32, #hivm.address_space<ub>>
  scf.for %r = %c0 to %c16 step %c1 {
    hivm.hir.pipe_barrier[<PIPE_ALL>]
    %a = tile.region %x[%r, 0] [1, 64] keep [1] : memref<16x64xf32, #hivm.address_space<ub>> to memref<64xf32, strided<[1], offset: ?>, #hivm.address_space<ub>>
    %v = memref.load %m[%r] : memref<16xf32, #hivm.address_space<ub>>
    %b = tile.region %x[%r, 0] [1, 64] keep [1] : memref<16x64xf32, #hivm.address_space<ub>> to memref<64xf32, strided<[1], offset: ?>, #hivm.address_space<ub>>
    tile.elementwise "sub" ins(%a, %v : memref<64xf32, strided<[1], offset: ?>, #hivm.address_space<ub>>, f32) outs(%b : memref<64xf32, strided<[1], offset: ?>, #hivm.address_space<ub>>)
  }
  return
}
func.func @stores() {
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
    memref.store %v, %m[%c0] : memref<16xf32, #hivm.address_space<ub>>
  }
  return
}
func.func @how_often(%n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %x = tile.alloc "x" : memref<16x64xf32, #hivm.address_space<ub>>
  %m = tile.alloc "m" : memref<16xf32, #hivm.address_space<ub>>
  scf.for %r = %c0 to %n step %c1 {
    %a = tile.region %x[%r, 0] [1, 64] keep [1] : memref<16x64xf32, #hivm.address_space<ub>> to memref<64xf32, strided<[1], offset: ?>, #hivm.address_space<ub>>
    %v = memref.load %m[%r] : memref<16xf32, #hivm.address_space<ub>>
    %b = tile.region %x[%r, 0] [1, 64] keep [1] : memref<16x64xf32, #hivm.address_space<ub>> to memref<64xf32, strided<[1], offset: ?>, #hivm.address_space<ub>>
    tile.elementwise "sub" ins(%a, %v : memref<64xf32, strided<[1], offset: ?>, #hivm.address_space<ub>>, f32) outs(%b : memref<64xf32, strided<[1], offset: ?>, #hivm.address_space<ub>>)
  }
  return
}
