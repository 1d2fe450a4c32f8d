// RUN: tilelang-npu opt %s -p assign-cores,lower-to-hivm --verify-diagnostics | filecheck %s
// CHECK: error[T232]: L0C cannot be stored to L1 as float32: its fractals are 16 x 16 and L1's 16 x 8
// CHECK: help: store it as float16, or go through a global tensor
func.func @k(%X: memref<16x16xf32, #hivm.address_space<gm>>) {
  %c1 = arith.constant 1 : index
  tile.launch(%c1) sub_blocks 1 : i64 {
  ^bb0(%blk: index):
    %x = tile.alloc "x" : memref<16x16xf32, #hivm.address_space<cc>>
    %y = tile.alloc "y" : memref<16x16xf32, #hivm.address_space<cbuf>>
    tile.copy %x to %y : memref<16x16xf32, #hivm.address_space<cc>> to memref<16x16xf32, #hivm.address_space<cbuf>>
  }
  return
}
