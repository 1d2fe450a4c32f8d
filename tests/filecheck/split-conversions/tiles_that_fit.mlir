// RUN: tilelang-npu opt %s -p assign-cores,split-conversions | filecheck %s
// RUN: tilelang-npu opt %s -p "assign-cores,split-conversions{chip=Ascend910_95}" | filecheck %s
// Two slots of both tiles, and the tiles of bfloat16 that the conversions need, fit in UB.
// CHECK-COUNT-2: tile.alloc
// CHECK-NOT:     tile.alloc
// CHECK:         return
func.func @k(%X: memref<8x1216xbf16, #hivm.address_space<gm>>, %Y: memref<8x1216xbf16, #hivm.address_space<gm>>) attributes {hacc.entry} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %x = tile.alloc "x" : memref<8x1216xf32, #hivm.address_space<ub>>
  %y = tile.alloc "y" : memref<8x1216xf32, #hivm.address_space<ub>>
  scf.for %i = %c0 to %c4 step %c1 {
    tile.copy %X to %x : memref<8x1216xbf16, #hivm.address_space<gm>> to memref<8x1216xf32, #hivm.address_space<ub>>
    tile.elementwise "exp" ins(%x : memref<8x1216xf32, #hivm.address_space<ub>>) outs(%y : memref<8x1216xf32, #hivm.address_space<ub>>)
    tile.copy %y to %Y : memref<8x1216xf32, #hivm.address_space<ub>> to memref<8x1216xbf16, #hivm.address_space<gm>>
  } {tile.num_stages = 2 : i64}
  return
}
