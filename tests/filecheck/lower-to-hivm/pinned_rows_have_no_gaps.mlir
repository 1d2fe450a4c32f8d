// RUN: tilelang-npu opt %s -p assign-cores,lower-to-hivm | filecheck %s
// The user fixed the address: the buffer takes only the bytes of its shape, so the address after them is free for another
// buffer.
// CHECK: memref.alloc() {tile.address = 0 : i64} : memref<4x5xf32, #hivm.address_space<ub>>
// CHECK-NOT: memref.subview
func.func @k(%X: memref<4x5xf32, #hivm.address_space<gm>>) {
  %c1 = arith.constant 1 : index
  tile.launch(%c1) sub_blocks 1 : i64 {
  ^bb0(%b: index):
    %x = tile.alloc "x" at 0 : i64 : memref<4x5xf32, #hivm.address_space<ub>>
    tile.copy %X to %x : memref<4x5xf32, #hivm.address_space<gm>> to memref<4x5xf32, #hivm.address_space<ub>>
  }
  return
}
