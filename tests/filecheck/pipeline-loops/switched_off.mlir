// RUN: tilelang-npu opt %s -p 'assign-cores,pipeline-loops{enabled=false}' | filecheck %s
// Without the option the pass changes nothing.
// CHECK: scf.for
// CHECK-NOT: num_stages
func.func @k(%X: memref<64x256xf32, #hivm.address_space<gm>>, %Y: memref<64x256xf32, #hivm.address_space<gm>>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  tile.launch(%c1) sub_blocks 1 : i64 {
  ^bb0(%block: index):
    %x = tile.alloc "x" : memref<8x256xf32, #hivm.address_space<ub>>
    scf.for %i = %c0 to %c8 step %c1 {
      %xgi = tile.region %X[%i, 0] [8, 256] keep [0, 1] : memref<64x256xf32, #hivm.address_space<gm>> to memref<8x256xf32, strided<[256, 1], offset: ?>, #hivm.address_space<gm>>
      tile.copy %xgi to %x : memref<8x256xf32, strided<[256, 1], offset: ?>, #hivm.address_space<gm>> to memref<8x256xf32, #hivm.address_space<ub>>
      tile.elementwise "exp" ins(%x : memref<8x256xf32, #hivm.address_space<ub>>) outs(%x : memref<8x256xf32, #hivm.address_space<ub>>)
      %xsi = tile.region %Y[%i, 0] [8, 256] keep [0, 1] : memref<64x256xf32, #hivm.address_space<gm>> to memref<8x256xf32, strided<[256, 1], offset: ?>, #hivm.address_space<gm>>
      tile.copy %x to %xsi : memref<8x256xf32, #hivm.address_space<ub>> to memref<8x256xf32, strided<[256, 1], offset: ?>, #hivm.address_space<gm>>
    }
  }
  return
}
