// RUN: tilelang-npu opt %s -p assign-cores,overlap-iterations | filecheck %s
// The next iteration's product reads a sum of the Vector core: no iteration can start before the previous one ends.
// CHECK:      scf.for %i = %c0 to %c8 step %c1 {
// CHECK-NOT:    scf.if
// CHECK-NOT:  tile.num_stages
func.func @k() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %true = arith.constant true
  tile.launch(%c1) sub_blocks 1 : i64 {
  ^bb0(%block: index):
    %state = tile.alloc "state" : memref<16x16xf32, #hivm.address_space<gm>>
    scf.for %i = %c0 to %c8 step %c1 {
      %a = tile.alloc "a" : memref<16x16xf32, #hivm.address_space<cbuf>>
      %c = tile.alloc "c" : memref<16x16xf32, #hivm.address_space<cc>>
      %w = tile.alloc "w" slots 2 : i64 : memref<16x16xf32, #hivm.address_space<gm>>
      %x = tile.alloc "x" : memref<16x16xf32, #hivm.address_space<ub>>
      tile.copy %state to %a : memref<16x16xf32, #hivm.address_space<gm>> to memref<16x16xf32, #hivm.address_space<cbuf>>
      tile.gemm %a, %a into %c init %true : memref<16x16xf32, #hivm.address_space<cbuf>>, memref<16x16xf32, #hivm.address_space<cbuf>> into memref<16x16xf32, #hivm.address_space<cc>>
      tile.copy %c to %w : memref<16x16xf32, #hivm.address_space<cc>> to memref<16x16xf32, #hivm.address_space<gm>>
      tile.copy %w to %x : memref<16x16xf32, #hivm.address_space<gm>> to memref<16x16xf32, #hivm.address_space<ub>>
      tile.copy %x to %state : memref<16x16xf32, #hivm.address_space<ub>> to memref<16x16xf32, #hivm.address_space<gm>>
    } {tile.num_stages = 2 : i64}
  }
  return
}
