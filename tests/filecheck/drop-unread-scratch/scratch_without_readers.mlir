// RUN: tilelang-npu opt %s -p drop-unread-scratch | filecheck %s
// Nothing reads the author's scratch memory; a write to it does not keep it as an operand.
// CHECK:      tile.fill %zero into %tmp
// CHECK:      tile.reduce "reduce_sum"
// CHECK-NOT:  tile.scratch
func.func @k(%x: memref<8x64xf32, #hivm.address_space<ub>>, %y: memref<8x1xf32, #hivm.address_space<ub>>) {
  %zero = arith.constant 0.0 : f32
  %tmp = tile.alloc "tmp" : memref<512xf32, #hivm.address_space<ub>>
  tile.fill %zero into %tmp : f32 into memref<512xf32, #hivm.address_space<ub>>
  tile.reduce "reduce_sum" ins(%x : memref<8x64xf32, #hivm.address_space<ub>>) outs(%y : memref<8x1xf32, #hivm.address_space<ub>>) dims = [1]
  tile.scratch %tmp : memref<512xf32, #hivm.address_space<ub>>
  return
}
