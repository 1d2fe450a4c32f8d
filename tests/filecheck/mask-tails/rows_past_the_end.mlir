// RUN: tilelang-npu opt %s -p 'mask-tails{mask_tails=true}' | filecheck %s
// The tile begins at row %i of a tensor of 10 rows: the reduction has the rows that the tensor has, through an addition.
// CHECK:      %[[ROOM:.*]] = arith.subi %{{.*}}, %i : index
// CHECK:      %[[LEFT:.*]] = arith.minsi %[[ROOM]], %{{.*}} : index
// CHECK:      %[[ROWS:.*]] = arith.maxsi %[[LEFT]], %{{.*}} : index
// CHECK:      tile.copy
// CHECK:      tile.elementwise "add"
// CHECK:      %[[PART:.*]] = tile.region %y[0, 0] [%[[ROWS]], 64] keep [0, 1]
// CHECK:      tile.reduce "reduce_max" ins(%[[PART]]
func.func @k(%X: memref<10x64xf32, #hivm.address_space<gm>>, %i: index) {
  %x = tile.alloc "x" : memref<8x64xf32, #hivm.address_space<ub>>
  %y = tile.alloc "y" : memref<8x64xf32, #hivm.address_space<ub>>
  %m = tile.alloc "m" : memref<1x64xf32, #hivm.address_space<ub>>
  %part = tile.region %X[%i, 0] [8, 64] keep [0, 1] : memref<10x64xf32, #hivm.address_space<gm>> to memref<8x64xf32, strided<[64, 1], offset: ?>, #hivm.address_space<gm>>
  tile.copy %part to %x : memref<8x64xf32, strided<[64, 1], offset: ?>, #hivm.address_space<gm>> to memref<8x64xf32, #hivm.address_space<ub>>
  tile.elementwise "add" ins(%x, %x : memref<8x64xf32, #hivm.address_space<ub>>, memref<8x64xf32, #hivm.address_space<ub>>) outs(%y : memref<8x64xf32, #hivm.address_space<ub>>)
  tile.reduce "reduce_max" ins(%y : memref<8x64xf32, #hivm.address_space<ub>>) outs(%m : memref<1x64xf32, #hivm.address_space<ub>>) dims = [0]
  return
}
