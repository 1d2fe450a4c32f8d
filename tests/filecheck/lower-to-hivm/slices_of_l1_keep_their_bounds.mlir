// RUN: tilelang-npu opt %s -p assign-cores,lower-to-hivm | filecheck %s
// A slice that is always within its buffer is a reinterpret_cast. A slice that may exceed it is taken axis by axis, so that
// its bounds are in the program: by fractals, or by rows if it may start at any row. A run-time size is the size of the
// memref.
// CHECK:      %[[A:.*]] = memref.alloc() : memref<6x4x16x16xf16, #hivm.address_space<cbuf>>
// CHECK:      memref.reinterpret_cast %[[A]] to offset: [%{{.*}}], sizes: [2, 4, 16, 16], strides: [1024, 256, 16, 1]
// CHECK:      %[[START:.*]] = arith.divui %{{.*}}, %c16
// CHECK-NEXT: memref.subview %[[A]][%[[START]], 0, 0, 0] [2, 4, 16, 16] [1, 1, 1, 1]
// CHECK:      %[[UP:.*]] = arith.addi %n_1, %c15
// CHECK-NEXT: %[[PANELS:.*]] = arith.divui %[[UP]], %c16
// CHECK:      memref.subview %[[A]][%{{.*}}, 0, 0, 0] [%[[PANELS]], 4, 16, 16] [1, 1, 1, 1] : {{.*}} to memref<?x4x16x16xf16, strided<[1024, 256, 16, 1], offset: ?>, #hivm.address_space<cbuf>>
// CHECK:      %[[ROWS:.*]] = memref.collapse_shape %[[A]] {{.*}} : {{.*}} into memref<6x64x16xf16, #hivm.address_space<cbuf>>
// CHECK-NEXT: %[[PART:.*]] = memref.subview %[[ROWS]][0, %n_1, 0] [6, 8, 16] [1, 1, 1]
// CHECK-NEXT: memref.expand_shape %[[PART]] {{.*}} output_shape [6, 1, 8, 16] : {{.*}} into memref<6x1x8x16xf16, strided<[1024, 128, 16, 1], offset: ?>, #hivm.address_space<cbuf>>
func.func @k(%X: memref<64x96xf16, #hivm.address_space<gm>>, %C: memref<64x64xf32, #hivm.address_space<gm>>, %n: index) {
  %c1 = arith.constant 1 : index
  %c0 = arith.constant 0 : index
  %c3 = arith.constant 3 : index
  %c32 = arith.constant 32 : index
  %yes = arith.constant true
  tile.launch(%c1) sub_blocks 1 : i64 {
  ^bb0(%b: index):
    %a = tile.alloc "a" : memref<64x96xf16, #hivm.address_space<cbuf>>
    scf.for %i = %c0 to %c3 step %c1 {
      %s = arith.muli %i, %c32 : index
      %x = tile.region %X [0, %s] [64, 32] keep [0, 1] : memref<64x96xf16, #hivm.address_space<gm>> to memref<64x32xf16, strided<[96, 1], offset: ?>, #hivm.address_space<gm>>
      %y = tile.region %a [0, %s] [64, 32] keep [0, 1] : memref<64x96xf16, #hivm.address_space<cbuf>> to memref<64x32xf16, strided<[96, 1], offset: ?>, #hivm.address_space<cbuf>>
      tile.copy %x to %y : memref<64x32xf16, strided<[96, 1], offset: ?>, #hivm.address_space<gm>> to memref<64x32xf16, strided<[96, 1], offset: ?>, #hivm.address_space<cbuf>>
    }
    %t = arith.muli %n, %c32 : index
    %x1 = tile.region %X [0, 0] [64, 32] keep [0, 1] : memref<64x96xf16, #hivm.address_space<gm>> to memref<64x32xf16, strided<[96, 1]>, #hivm.address_space<gm>>
    %y1 = tile.region %a [0, %t] [64, 32] keep [0, 1] : memref<64x96xf16, #hivm.address_space<cbuf>> to memref<64x32xf16, strided<[96, 1], offset: ?>, #hivm.address_space<cbuf>>
    tile.copy %x1 to %y1 : memref<64x32xf16, strided<[96, 1]>, #hivm.address_space<gm>> to memref<64x32xf16, strided<[96, 1], offset: ?>, #hivm.address_space<cbuf>>
    %x2 = tile.region %X [0, 0] [64, %n] keep [0, 1] : memref<64x96xf16, #hivm.address_space<gm>> to memref<64x?xf16, strided<[96, 1]>, #hivm.address_space<gm>>
    %y2 = tile.region %a [0, %t] [64, %n] keep [0, 1] : memref<64x96xf16, #hivm.address_space<cbuf>> to memref<64x?xf16, strided<[96, 1], offset: ?>, #hivm.address_space<cbuf>>
    tile.copy %x2 to %y2 : memref<64x?xf16, strided<[96, 1]>, #hivm.address_space<gm>> to memref<64x?xf16, strided<[96, 1], offset: ?>, #hivm.address_space<cbuf>>
    %x3 = tile.region %X [0, 0] [8, 96] keep [0, 1] : memref<64x96xf16, #hivm.address_space<gm>> to memref<8x96xf16, strided<[96, 1]>, #hivm.address_space<gm>>
    %y3 = tile.region %a [%n, 0] [8, 96] keep [0, 1] : memref<64x96xf16, #hivm.address_space<cbuf>> to memref<8x96xf16, strided<[96, 1], offset: ?>, #hivm.address_space<cbuf>>
    tile.copy %x3 to %y3 : memref<8x96xf16, strided<[96, 1]>, #hivm.address_space<gm>> to memref<8x96xf16, strided<[96, 1], offset: ?>, #hivm.address_space<cbuf>>
  }
  return
}
