// RUN: tilelang-npu opt %s -p assign-cores,bind-sub-blocks{mixed=false} | filecheck %s
// Each Vector core loads, computes and stores its half of the rows.
// CHECK:      tile.launch(%c1) sub_blocks 2 : i64 explicit {
// CHECK-NEXT: ^bb0(%cid: index, %vid: index):
// CHECK:      tile.alloc "x" : memref<8x16xf32
// CHECK:      tile.region %X[%{{.*}}, 0] [8, 16]
// CHECK:      tile.elementwise "exp" ins({{.*}} : memref<8x16xf32
// CHECK:      tile.region %Y[%{{.*}}, 0] [8, 16]
func.func @k(%X: memref<16x16xf32, #hivm.address_space<gm>>, %Y: memref<16x16xf32, #hivm.address_space<gm>>) {
  %c1 = arith.constant 1 : index
  tile.launch(%c1) sub_blocks 2 : i64 spread {
  ^bb0(%cid: index):
    %x = tile.alloc "x" : memref<16x16xf32, #hivm.address_space<ub>>
    tile.copy %X to %x : memref<16x16xf32, #hivm.address_space<gm>> to memref<16x16xf32, #hivm.address_space<ub>>
    tile.elementwise "exp" ins(%x : memref<16x16xf32, #hivm.address_space<ub>>) outs(%x : memref<16x16xf32, #hivm.address_space<ub>>)
    tile.copy %x to %Y : memref<16x16xf32, #hivm.address_space<ub>> to memref<16x16xf32, #hivm.address_space<gm>>
  }
  return
}
