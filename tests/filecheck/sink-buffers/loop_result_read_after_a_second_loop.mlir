// RUN: tilelang-npu opt %s -p assign-cores,sink-buffers | filecheck %s
// The second loop may have no iteration: the store after it then reads the value of the first loop. The third loop depends
// on neither.
// CHECK:      %x = tile.alloc "x" : memref
// CHECK-NOT:  tile.alloc
// CHECK:      scf.for %i
// CHECK-NOT:  tile.alloc
// CHECK:      scf.for %j
// CHECK-NOT:  tile.alloc
// CHECK:      tile.copy %x to %Y
// CHECK:      scf.for %k
// CHECK-NEXT:   tile.alloc "x" slots 2
func.func @k(%X: memref<8x64xf32, #hivm.address_space<gm>>, %Y: memref<8x64xf32, #hivm.address_space<gm>>, %n: i32) attributes {hacc.entry} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %last = arith.index_cast %n : i32 to index
  %x = tile.alloc "x" : memref<8x64xf32, #hivm.address_space<ub>>
  scf.for %i = %c0 to %c4 step %c1 {
    tile.copy %X to %x : memref<8x64xf32, #hivm.address_space<gm>> to memref<8x64xf32, #hivm.address_space<ub>>
  } {tile.num_stages = 2 : i64}
  scf.for %j = %c0 to %last step %c1 {
    tile.copy %X to %x : memref<8x64xf32, #hivm.address_space<gm>> to memref<8x64xf32, #hivm.address_space<ub>>
  } {tile.num_stages = 2 : i64}
  tile.copy %x to %Y : memref<8x64xf32, #hivm.address_space<ub>> to memref<8x64xf32, #hivm.address_space<gm>>
  scf.for %k = %c0 to %c4 step %c1 {
    tile.copy %X to %x : memref<8x64xf32, #hivm.address_space<gm>> to memref<8x64xf32, #hivm.address_space<ub>>
    tile.copy %x to %Y : memref<8x64xf32, #hivm.address_space<ub>> to memref<8x64xf32, #hivm.address_space<gm>>
  } {tile.num_stages = 2 : i64}
  return
}
