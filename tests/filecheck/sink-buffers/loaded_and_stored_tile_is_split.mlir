// RUN: tilelang-npu opt %s -p assign-cores,sink-buffers | filecheck %s
// The loaded value is dead when the stored value is written to the tile: it becomes two tiles, so that the next load does
// not wait for the store. In the second loop the stored tile is computed in place, and stays one.
// CHECK:      scf.for %i
// CHECK-DAG:    %x = tile.alloc "x" slots 2
// CHECK-DAG:    %x_1 = tile.alloc "x" slots 2
// CHECK:        tile.copy %X to %x :
// CHECK-NEXT:   tile.copy %x to %y :
// CHECK-NEXT:   tile.copy %y to %x_1 :
// CHECK-NEXT:   tile.copy %x_1 to %Y :
// CHECK:      scf.for %j
// CHECK-NEXT:   %z = tile.alloc "z" slots 2
// CHECK-NOT:    tile.alloc
func.func @k(%X: memref<8x64xf32, #hivm.address_space<gm>>, %Y: memref<8x64xf32, #hivm.address_space<gm>>) attributes {hacc.entry} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %x = tile.alloc "x" : memref<8x64xf32, #hivm.address_space<ub>>
  %y = tile.alloc "y" : memref<8x64xf32, #hivm.address_space<ub>>
  %z = tile.alloc "z" : memref<8x64xf32, #hivm.address_space<ub>>
  scf.for %i = %c0 to %c4 step %c1 {
    tile.copy %X to %x : memref<8x64xf32, #hivm.address_space<gm>> to memref<8x64xf32, #hivm.address_space<ub>>
    tile.copy %x to %y : memref<8x64xf32, #hivm.address_space<ub>> to memref<8x64xf32, #hivm.address_space<ub>>
    tile.copy %y to %x : memref<8x64xf32, #hivm.address_space<ub>> to memref<8x64xf32, #hivm.address_space<ub>>
    tile.copy %x to %Y : memref<8x64xf32, #hivm.address_space<ub>> to memref<8x64xf32, #hivm.address_space<gm>>
  } {tile.num_stages = 2 : i64}
  scf.for %j = %c0 to %c4 step %c1 {
    tile.copy %X to %z : memref<8x64xf32, #hivm.address_space<gm>> to memref<8x64xf32, #hivm.address_space<ub>>
    tile.copy %z to %z : memref<8x64xf32, #hivm.address_space<ub>> to memref<8x64xf32, #hivm.address_space<ub>>
    tile.copy %z to %Y : memref<8x64xf32, #hivm.address_space<ub>> to memref<8x64xf32, #hivm.address_space<gm>>
  } {tile.num_stages = 2 : i64}
  return
}
