// RUN: tilelang-npu opt %s -p assign-cores,bind-sub-blocks{mixed=true} | filecheck %s
// RUN: tilelang-npu opt %s -p assign-cores,bind-sub-blocks{mixed=false} | filecheck %s --check-prefix=ASKED
// The Cube core computes the product, and each Vector core takes half of its rows, although the kernel asks for one
// sub-block. With mixed=false the kernel stays undivided.
// CHECK:      tile.launch(%c1) sub_blocks 2 : i64 explicit {
// CHECK-NEXT: ^bb0(%block: index, %vid: index):
// CHECK:      tile.alloc "x" : memref<8x16xf32
// CHECK:      tile.region %w[%{{.*}}, 0] [8, 16]
// CHECK:      tile.region %Y[%{{.*}}, 0] [8, 16]
// ASKED:      tile.launch(%c1) sub_blocks 1 : i64 {
// ASKED:      tile.alloc "x" : memref<16x16xf32
func.func @k(%Y: memref<16x16xf32, #hivm.address_space<gm>>) {
  %c1 = arith.constant 1 : index
  tile.launch(%c1) sub_blocks 1 : i64 {
  ^bb0(%block: index):
    %c = tile.alloc "c" : memref<16x16xf32, #hivm.address_space<cc>>
    %w = tile.alloc "w" : memref<16x16xf32, #hivm.address_space<gm>>
    %x = tile.alloc "x" : memref<16x16xf32, #hivm.address_space<ub>>
    tile.copy %c to %w : memref<16x16xf32, #hivm.address_space<cc>> to memref<16x16xf32, #hivm.address_space<gm>>
    tile.copy %w to %x : memref<16x16xf32, #hivm.address_space<gm>> to memref<16x16xf32, #hivm.address_space<ub>>
    tile.elementwise "exp" ins(%x : memref<16x16xf32, #hivm.address_space<ub>>) outs(%x : memref<16x16xf32, #hivm.address_space<ub>>)
    tile.copy %x to %Y : memref<16x16xf32, #hivm.address_space<ub>> to memref<16x16xf32, #hivm.address_space<gm>>
  }
  return
}
