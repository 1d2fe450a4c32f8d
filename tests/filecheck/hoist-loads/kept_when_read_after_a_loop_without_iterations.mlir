// RUN: tilelang-npu opt %s -p hoist-loads | filecheck %s
// The loop may have no iteration, and the buffer is read after it, so the load stays.
// CHECK:      scf.for
// CHECK-NEXT:   tile.copy %W to %w
func.func @k(%X: memref<8x64xf32, #hivm.address_space<gm>>, %W: memref<8x64xf32, #hivm.address_space<gm>>, %m: i32) {
  %n = arith.index_cast %m : i32 to index
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  tile.launch(%c1) sub_blocks 1 : i64 {
  ^bb0(%block: index):
    %x = tile.alloc "x" : memref<8x64xf32, #hivm.address_space<ub>>
    %w = tile.alloc "w" : memref<8x64xf32, #hivm.address_space<ub>>
    scf.for %i = %c0 to %n step %c1 {
      tile.copy %W to %w : memref<8x64xf32, #hivm.address_space<gm>> to memref<8x64xf32, #hivm.address_space<ub>>
      tile.elementwise "add" ins(%x, %w : memref<8x64xf32, #hivm.address_space<ub>>, memref<8x64xf32, #hivm.address_space<ub>>) outs(%x : memref<8x64xf32, #hivm.address_space<ub>>)
    }
    tile.elementwise "add" ins(%x, %w : memref<8x64xf32, #hivm.address_space<ub>>, memref<8x64xf32, #hivm.address_space<ub>>) outs(%x : memref<8x64xf32, #hivm.address_space<ub>>)
  }
  return
}
