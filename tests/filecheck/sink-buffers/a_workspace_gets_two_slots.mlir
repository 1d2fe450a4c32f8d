// RUN: tilelang-npu opt %s -p sink-buffers | filecheck %s
// A workspace between the cores gets two slots in any loop: the producer may be one iteration ahead.
// CHECK:      scf.for
// CHECK-NEXT: tile.alloc "w" slots 2
func.func @k(%X: memref<8x64xf32, #hivm.address_space<gm>>, %Y: memref<8x64xf32, #hivm.address_space<gm>>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %u = tile.alloc "u" : memref<8x64xf32, #hivm.address_space<ub>>
  %w = tile.alloc "w" : memref<8x64xf32, #hivm.address_space<gm>>
  scf.for %i = %c0 to %c4 step %c1 {
    tile.copy %u to %w : memref<8x64xf32, #hivm.address_space<ub>> to memref<8x64xf32, #hivm.address_space<gm>>
    tile.copy %w to %u : memref<8x64xf32, #hivm.address_space<gm>> to memref<8x64xf32, #hivm.address_space<ub>>
  }
  return
}
