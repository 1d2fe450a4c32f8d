// RUN: tilelang-npu opt %s -p assign-cores,lower-to-hivm | filecheck %s
// The offset of a reinterpret_cast counts from the base pointer of its source, not from the source's first element.
// CHECK: %[[ROW:.*]] = memref.reinterpret_cast %{{.*}} to offset: [128], sizes: [2, 32], strides: [32, 1]
// CHECK: memref.reinterpret_cast %[[ROW]] to offset: [160], sizes: [4, 8], strides: [8, 1]
func.func @k() {
  %c1 = arith.constant 1 : index
  %cst = arith.constant 0.0 : f32
  tile.launch(%c1) sub_blocks 1 : i64 {
  ^bb0(%b: index):
    %x = tile.alloc "x" : memref<8x64xf32, #hivm.address_space<ub>>
    %row = tile.region %x [2, 0] [1, 64] keep [1] : memref<8x64xf32, #hivm.address_space<ub>> to memref<64xf32, strided<[1], offset: 128>, #hivm.address_space<ub>>
    %two = tile.view %row : memref<64xf32, strided<[1], offset: 128>, #hivm.address_space<ub>> to memref<2x32xf32, strided<[32, 1], offset: 128>, #hivm.address_space<ub>>
    %last = tile.region %two [1, 0] [1, 32] keep [0, 1] : memref<2x32xf32, strided<[32, 1], offset: 128>, #hivm.address_space<ub>> to memref<1x32xf32, strided<[32, 1], offset: 160>, #hivm.address_space<ub>>
    %line = tile.view %last : memref<1x32xf32, strided<[32, 1], offset: 160>, #hivm.address_space<ub>> to memref<4x8xf32, strided<[8, 1], offset: 160>, #hivm.address_space<ub>>
    tile.fill %cst into %line : f32 into memref<4x8xf32, strided<[8, 1], offset: 160>, #hivm.address_space<ub>>
  }
  return
}
