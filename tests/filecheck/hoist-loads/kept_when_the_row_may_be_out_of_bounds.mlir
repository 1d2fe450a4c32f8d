// RUN: tilelang-npu opt %s -p hoist-loads | filecheck %s
// The loop may have no iteration, and only an iteration checks that the row is within the tensor, so the load stays.
// CHECK:      scf.for
// CHECK-NEXT:   tile.region
// CHECK-NEXT:   tile.copy
func.func @k(%X: memref<8x64xf32, #hivm.address_space<gm>>, %W: memref<8x64xf32, #hivm.address_space<gm>>, %m: i32) {
  %n = arith.index_cast %m : i32 to index
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  tile.launch(%c1) sub_blocks 1 : i64 {
  ^bb0(%block: index):
    %w = tile.alloc "w" : memref<1x64xf32, #hivm.address_space<ub>>
    %x = tile.alloc "x" : memref<1x64xf32, #hivm.address_space<ub>>
    scf.for %i = %c0 to %n step %c1 {
      %row = tile.region %W[%n, 0] [1, 64] keep [0, 1] : memref<8x64xf32, #hivm.address_space<gm>> to memref<1x64xf32, strided<[64, 1], offset: ?>, #hivm.address_space<gm>>
      tile.copy %row to %w : memref<1x64xf32, strided<[64, 1], offset: ?>, #hivm.address_space<gm>> to memref<1x64xf32, #hivm.address_space<ub>>
      tile.elementwise "add" ins(%x, %w : memref<1x64xf32, #hivm.address_space<ub>>, memref<1x64xf32, #hivm.address_space<ub>>) outs(%x : memref<1x64xf32, #hivm.address_space<ub>>)
    }
  }
  return
}
