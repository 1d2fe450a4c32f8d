// RUN: tilelang-npu opt %s -p assign-cores,lower-to-hivm | filecheck %s
// Vector work with a sub-block index and no Cube work runs only on the Vector cores: two blocks per grid point.
// CHECK: hacc.block_dim = 16 : i64
// CHECK-SAME: func_core_type<AIV>
// CHECK: %[[B:.*]] = arith.index_cast
// CHECK: %[[VID:.*]] = arith.remui %[[B]], %c2
// CHECK: %[[CID:.*]] = arith.divui %[[B]], %c2
func.func @k(%X: memref<16x64xf32, #hivm.address_space<gm>>) {
  %c8 = arith.constant 8 : index
  tile.launch(%c8) sub_blocks 2 : i64 explicit {
  ^bb0(%b: index, %v: index):
    %c2 = arith.constant 2 : index
    %twice = arith.muli %b, %c2 : index
    %row = arith.addi %twice, %v : index
    %x = tile.alloc "x" : memref<1x64xf32, #hivm.address_space<ub>>
    %r = tile.region %X[%row, 0] [1, 64] keep [0, 1] : memref<16x64xf32, #hivm.address_space<gm>> to memref<1x64xf32, strided<[64, 1], offset: ?>, #hivm.address_space<gm>>
    tile.copy %r to %x : memref<1x64xf32, strided<[64, 1], offset: ?>, #hivm.address_space<gm>> to memref<1x64xf32, #hivm.address_space<ub>>
  }
  return
}
