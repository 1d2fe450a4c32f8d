// RUN: tilelang-npu opt %s -p drop-unread-scratch | filecheck %s
// The kernel also stores the buffer, which is undefined after the operation: the scratch operand stays.
// CHECK:      tile.scratch %part
func.func @k(%Y: memref<512xf32, #hivm.address_space<gm>>) {
  %tmp = tile.alloc "tmp" : memref<512xf32, #hivm.address_space<ub>>
  %part = tile.region %tmp[0] [64] keep [0] : memref<512xf32, #hivm.address_space<ub>> to memref<64xf32, strided<[1], offset: 0>, #hivm.address_space<ub>>
  tile.scratch %part : memref<64xf32, strided<[1], offset: 0>, #hivm.address_space<ub>>
  tile.copy %tmp to %Y : memref<512xf32, #hivm.address_space<ub>> to memref<512xf32, #hivm.address_space<gm>>
  return
}
