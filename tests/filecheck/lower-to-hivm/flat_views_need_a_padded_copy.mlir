// RUN: tilelang-npu opt %s -p assign-cores,lower-to-hivm | filecheck %s
// A buffer with rows of 6 floats is also viewed as flat, so its rows have no gaps: the DMA loads them to a buffer with
// padded rows, and the Vector core moves them together.
// CHECK: %[[X:.*]] = memref.alloc() : memref<8x6xf32, #hivm.address_space<ub>>
// CHECK: %[[WIDE:.*]] = memref.alloc() {{.*}} : memref<8x8xf32, #hivm.address_space<ub>>
// CHECK: %[[ROWS:.*]] = memref.subview %[[WIDE]]
// CHECK: hivm.hir.load ins({{.*}}) outs(%[[ROWS]] :
// CHECK: hivm.hir.copy ins(%[[ROWS]] : {{.*}}) outs(%[[X]] :
// CHECK: memref.reinterpret_cast %[[X]] to offset: [0], sizes: [48], strides: [1]
func.func @k(%X: memref<8x64xf32, #hivm.address_space<gm>>) {
  %c1 = arith.constant 1 : index
  %cst = arith.constant 0.0 : f32
  tile.launch(%c1) sub_blocks 1 : i64 {
  ^bb0(%b: index):
    %x = tile.alloc "x" : memref<8x6xf32, #hivm.address_space<ub>>
    %part = tile.region %X [0, 0] [8, 6] keep [0, 1] : memref<8x64xf32, #hivm.address_space<gm>> to memref<8x6xf32, strided<[64, 1]>, #hivm.address_space<gm>>
    tile.copy %part to %x : memref<8x6xf32, strided<[64, 1]>, #hivm.address_space<gm>> to memref<8x6xf32, #hivm.address_space<ub>>
    %flat = tile.view %x : memref<8x6xf32, #hivm.address_space<ub>> to memref<48xf32, #hivm.address_space<ub>>
    tile.fill %cst into %flat : f32 into memref<48xf32, #hivm.address_space<ub>>
  }
  return
}
