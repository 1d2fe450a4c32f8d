// RUN: tilelang-npu opt %s -p assign-cores,split-conversions | filecheck %s
// Conversions stay outside of loops, in a serial loop, with an addition in GM, and in a loop with waits of the author.
// CHECK-COUNT-1: tile.alloc
// CHECK-NOT:     tile.alloc
// CHECK:         return
func.func @k(%X: memref<8x2752xbf16, #hivm.address_space<gm>>, %Y: memref<8x2752xbf16, #hivm.address_space<gm>>) attributes {hacc.entry} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %x = tile.alloc "x" : memref<8x2752xf32, #hivm.address_space<ub>>
  tile.copy %X to %x : memref<8x2752xbf16, #hivm.address_space<gm>> to memref<8x2752xf32, #hivm.address_space<ub>>
  scf.for %i = %c0 to %c4 step %c1 {
    tile.copy %X to %x : memref<8x2752xbf16, #hivm.address_space<gm>> to memref<8x2752xf32, #hivm.address_space<ub>>
    tile.copy %x to %Y : memref<8x2752xf32, #hivm.address_space<ub>> to memref<8x2752xbf16, #hivm.address_space<gm>>
  }
  scf.for %j = %c0 to %c4 step %c1 {
    tile.copy %x to %Y atomic "add" : memref<8x2752xf32, #hivm.address_space<ub>> to memref<8x2752xbf16, #hivm.address_space<gm>>
  } {tile.num_stages = 2 : i64}
  scf.for %k = %c0 to %c4 step %c1 {
    tile.copy %X to %x : memref<8x2752xbf16, #hivm.address_space<gm>> to memref<8x2752xf32, #hivm.address_space<ub>>
    hivm.hir.pipe_barrier[<PIPE_V>]
  } {tile.num_stages = 2 : i64}
  return
}
