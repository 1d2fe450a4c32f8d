// RUN: tilelang-npu opt %s -p assign-cores,make-persistent | filecheck %s
// The author synchronises the kernel.
// CHECK: tile.launch(%c100)
// CHECK-NOT: scf.for
func.func @k(%X: memref<800x256xf32, #hivm.address_space<gm>>, %Y: memref<800x256xf32, #hivm.address_space<gm>>) {
  %c8 = arith.constant 8 : index
  %c100 = arith.constant 100 : index
  tile.launch(%c100) sub_blocks 1 : i64 {
  ^bb0(%block: index):
    hivm.hir.pipe_barrier[<PIPE_ALL>]
    %row = arith.muli %block, %c8 : index
    %x = tile.alloc "x" : memref<8x256xf32, #hivm.address_space<ub>>
    %xg = tile.region %X[%row, 0] [8, 256] keep [0, 1] : memref<800x256xf32, #hivm.address_space<gm>> to memref<8x256xf32, strided<[256, 1], offset: ?>, #hivm.address_space<gm>>
    tile.copy %xg to %x : memref<8x256xf32, strided<[256, 1], offset: ?>, #hivm.address_space<gm>> to memref<8x256xf32, #hivm.address_space<ub>>
    tile.elementwise "exp" ins(%x : memref<8x256xf32, #hivm.address_space<ub>>) outs(%x : memref<8x256xf32, #hivm.address_space<ub>>)
    %yg = tile.region %Y[%row, 0] [8, 256] keep [0, 1] : memref<800x256xf32, #hivm.address_space<gm>> to memref<8x256xf32, strided<[256, 1], offset: ?>, #hivm.address_space<gm>>
    tile.copy %x to %yg : memref<8x256xf32, #hivm.address_space<ub>> to memref<8x256xf32, strided<[256, 1], offset: ?>, #hivm.address_space<gm>>
  }
  return
}
