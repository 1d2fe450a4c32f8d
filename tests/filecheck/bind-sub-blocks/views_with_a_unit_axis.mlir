// RUN: tilelang-npu opt %s -p assign-cores,bind-sub-blocks{mixed=false} | filecheck %s
// A view that drops or adds an axis of size 1 has the rows of its buffer, and so has half of them on each Vector core.
// CHECK:      tile.alloc "x" : memref<8x1x16xf32
// CHECK:      tile.alloc "y" : memref<8x16xf32
// CHECK:      tile.view %x : memref<8x1x16xf32, {{.*}} to memref<8x16xf32
// CHECK:      tile.elementwise "exp" ins({{.*}} : memref<8x16xf32, {{.*}} outs({{.*}} : memref<8x16xf32
func.func @k(%X: memref<16x1x16xf32, #hivm.address_space<gm>>, %Y: memref<16x16xf32, #hivm.address_space<gm>>) {
  %c1 = arith.constant 1 : index
  tile.launch(%c1) sub_blocks 2 : i64 spread {
  ^bb0(%cid: index):
    %x = tile.alloc "x" : memref<16x1x16xf32, #hivm.address_space<ub>>
    %y = tile.alloc "y" : memref<16x16xf32, #hivm.address_space<ub>>
    tile.copy %X to %x : memref<16x1x16xf32, #hivm.address_space<gm>> to memref<16x1x16xf32, #hivm.address_space<ub>>
    %v = tile.view %x : memref<16x1x16xf32, #hivm.address_space<ub>> to memref<16x16xf32, #hivm.address_space<ub>>
    tile.elementwise "exp" ins(%v : memref<16x16xf32, #hivm.address_space<ub>>) outs(%y : memref<16x16xf32, #hivm.address_space<ub>>)
    tile.copy %y to %Y : memref<16x16xf32, #hivm.address_space<ub>> to memref<16x16xf32, #hivm.address_space<gm>>
  }
  return
}
