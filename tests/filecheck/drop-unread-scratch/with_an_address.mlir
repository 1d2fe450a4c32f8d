// RUN: tilelang-npu opt %s -p drop-unread-scratch | filecheck %s
// The author fixed the address of the buffer, whose bytes may be those of another buffer: the scratch operand stays.
// CHECK:      tile.scratch %tmp
func.func @k() {
  %tmp = tile.alloc "tmp" at 0 : i64 : memref<512xf32, #hivm.address_space<ub>>
  tile.scratch %tmp : memref<512xf32, #hivm.address_space<ub>>
  return
}
