// RUN: tilelang-npu opt %s -p assign-cores,lower-to-hivm --verify-diagnostics | filecheck %s
// CHECK: error[T230]: there is no path from GM to GM
// CHECK: help: copy GM to UB (T.alloc_ub) and from there to GM
func.func @k(%X: memref<64xf32, #hivm.address_space<gm>>, %Y: memref<64xf32, #hivm.address_space<gm>>) {
  %c1 = arith.constant 1 : index
  tile.launch(%c1) sub_blocks 1 : i64 {
  ^bb0(%b: index):
    tile.copy %X to %Y : memref<64xf32, #hivm.address_space<gm>> to memref<64xf32, #hivm.address_space<gm>>
  }
  return
}
