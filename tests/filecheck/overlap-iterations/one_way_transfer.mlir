// RUN: tilelang-npu opt %s -p assign-cores,overlap-iterations | filecheck %s
// Only the Cube core sends to the Vector core: each core runs ahead as far as the ring allows, and nothing moves.
// CHECK:      scf.for %i = %c0 to %c8 step %c1 {
// CHECK-NOT:    scf.if
// CHECK-NOT:  tile.num_stages
func.func @k(%Y: memref<16x16xf32, #hivm.address_space<gm>>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  tile.launch(%c1) sub_blocks 1 : i64 {
  ^bb0(%block: index):
    %c = tile.alloc "c" : memref<16x16xf32, #hivm.address_space<cc>>
    scf.for %i = %c0 to %c8 step %c1 {
      %w = tile.alloc "w" slots 2 : i64 : memref<16x16xf32, #hivm.address_space<gm>>
      %x = tile.alloc "x" slots 2 : i64 : memref<16x16xf32, #hivm.address_space<ub>>
      tile.copy %c to %w : memref<16x16xf32, #hivm.address_space<cc>> to memref<16x16xf32, #hivm.address_space<gm>>
      tile.copy %w to %x : memref<16x16xf32, #hivm.address_space<gm>> to memref<16x16xf32, #hivm.address_space<ub>>
      tile.copy %x to %Y : memref<16x16xf32, #hivm.address_space<ub>> to memref<16x16xf32, #hivm.address_space<gm>>
    } {tile.num_stages = 2 : i64}
  }
  return
}
