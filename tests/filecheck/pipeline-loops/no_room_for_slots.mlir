// RUN: tilelang-npu opt %s -p assign-cores,pipeline-loops | filecheck %s
// Two tiles fill UB, so no second slot fits.
// CHECK: scf.for
// CHECK-NOT: num_stages
func.func @k(%X: memref<64x3072xf32, #hivm.address_space<gm>>, %Y: memref<64x3072xf32, #hivm.address_space<gm>>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  tile.launch(%c1) sub_blocks 1 : i64 {
  ^bb0(%block: index):
    %x = tile.alloc "x" : memref<8x3072xf32, #hivm.address_space<ub>>
    %y = tile.alloc "y" : memref<8x3072xf32, #hivm.address_space<ub>>
    scf.for %i = %c0 to %c8 step %c1 {
      %xgi = tile.region %X[%i, 0] [8, 3072] keep [0, 1] : memref<64x3072xf32, #hivm.address_space<gm>> to memref<8x3072xf32, strided<[3072, 1], offset: ?>, #hivm.address_space<gm>>
      tile.copy %xgi to %x : memref<8x3072xf32, strided<[3072, 1], offset: ?>, #hivm.address_space<gm>> to memref<8x3072xf32, #hivm.address_space<ub>>
      tile.elementwise "exp" ins(%x : memref<8x3072xf32, #hivm.address_space<ub>>) outs(%y : memref<8x3072xf32, #hivm.address_space<ub>>)
      %ysi = tile.region %Y[%i, 0] [8, 3072] keep [0, 1] : memref<64x3072xf32, #hivm.address_space<gm>> to memref<8x3072xf32, strided<[3072, 1], offset: ?>, #hivm.address_space<gm>>
      tile.copy %y to %ysi : memref<8x3072xf32, #hivm.address_space<ub>> to memref<8x3072xf32, strided<[3072, 1], offset: ?>, #hivm.address_space<gm>>
    }
  }
  return
}
