// RUN: tilelang-npu opt %s -p assign-cores,sink-buffers | filecheck %s
// The buffer moves into the scope, and further into the loop whose iterations define it.
// CHECK:      tile.on_core "vector" {
// CHECK-NOT:  tile.alloc
// CHECK:      scf.for
// CHECK-NEXT: tile.alloc "x"
func.func @k(%X: memref<16x16xf32, #hivm.address_space<gm>>, %Y: memref<16x16xf32, #hivm.address_space<gm>>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  tile.launch(%c1) sub_blocks 1 : i64 {
  ^bb0(%cid: index):
    %x = tile.alloc "x" : memref<16x16xf32, #hivm.address_space<ub>>
    tile.on_core "vector" {
      scf.for %i = %c0 to %c4 step %c1 {
        tile.copy %X to %x : memref<16x16xf32, #hivm.address_space<gm>> to memref<16x16xf32, #hivm.address_space<ub>>
        tile.copy %x to %Y : memref<16x16xf32, #hivm.address_space<ub>> to memref<16x16xf32, #hivm.address_space<gm>>
      }
    }
  }
  return
}
