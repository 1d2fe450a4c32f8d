// RUN: tilelang-npu opt %s -p hoist-loads | filecheck %s
// The load is hoisted out of both loops, with the allocation of its buffer and the computation of its offset.
// CHECK:      tile.alloc "v"
// CHECK:      tile.region %W[
// CHECK-NEXT: tile.copy
// CHECK-NEXT: scf.for
// CHECK-NEXT:   scf.for
// CHECK-NEXT:     tile.elementwise "add"
func.func @k(%X: memref<8x64xf32, #hivm.address_space<gm>>, %W: memref<8x64xf32, #hivm.address_space<gm>>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  tile.launch(%c1) sub_blocks 1 : i64 {
  ^bb0(%block: index):
    %x = tile.alloc "x" : memref<8x64xf32, #hivm.address_space<ub>>
    %w = tile.alloc "w" : memref<8x64xf32, #hivm.address_space<ub>>
    scf.for %i = %c0 to %c4 step %c1 {
      scf.for %j = %c0 to %c4 step %c1 {
        %v = tile.alloc "v" : memref<1x64xf32, #hivm.address_space<ub>>
        %r = arith.addi %block, %c1 : index
        %row = tile.region %W[%r, 0] [1, 64] keep [0, 1] : memref<8x64xf32, #hivm.address_space<gm>> to memref<1x64xf32, strided<[64, 1], offset: ?>, #hivm.address_space<gm>>
        tile.copy %row to %v : memref<1x64xf32, strided<[64, 1], offset: ?>, #hivm.address_space<gm>> to memref<1x64xf32, #hivm.address_space<ub>>
        tile.elementwise "add" ins(%x, %v : memref<8x64xf32, #hivm.address_space<ub>>, memref<1x64xf32, #hivm.address_space<ub>>) outs(%x : memref<8x64xf32, #hivm.address_space<ub>>)
      }
    }
  }
  return
}
