// RUN: tilelang-npu opt %s -p assign-cores,lower-to-hivm | filecheck %s
// A DMA loads rows of 5 floats one by one: each starts at a multiple of 32 bytes, and the kernel sees 5 columns.
// CHECK: %[[WIDE:.*]] = memref.alloc() : memref<4x8xf32, #hivm.address_space<ub>>
// CHECK: memref.subview %[[WIDE]][0, 0] [4, 5] [1, 1] : memref<4x8xf32, #hivm.address_space<ub>> to memref<4x5xf32, strided<[8, 1]>
func.func @k(%X: memref<4x5xf32, #hivm.address_space<gm>>) {
  %c1 = arith.constant 1 : index
  tile.launch(%c1) sub_blocks 1 : i64 {
  ^bb0(%b: index):
    %x = tile.alloc "x" : memref<4x5xf32, #hivm.address_space<ub>>
    tile.copy %X to %x : memref<4x5xf32, #hivm.address_space<gm>> to memref<4x5xf32, #hivm.address_space<ub>>
  }
  return
}
