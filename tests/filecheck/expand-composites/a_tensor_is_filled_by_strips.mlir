// RUN: tilelang-npu opt %s -p expand-composites | filecheck %s
// RUN: tilelang-npu opt %s -p "expand-composites{by_hand=true}" | filecheck %s --check-prefix=HAND
// A tensor is filled by copies of a filled strip of 16384 bytes in UB; a tensor that fits in one strip needs no loop.
// CHECK:      %[[SMALL:.*]] = tile.alloc "Y_fill" : memref<8x6xf32, #hivm.address_space<ub>>
// CHECK-NEXT: tile.fill %cst into %[[SMALL]]
// CHECK-NEXT: %[[ALL:.*]] = tile.region %Y[0, 0] [8, 6]
// CHECK-NEXT: tile.copy %[[SMALL]] to %[[ALL]]
// CHECK:      %[[STRIP:.*]] = tile.alloc "X_fill" : memref<1x4096xf32, #hivm.address_space<ub>>
// CHECK-NEXT: tile.fill %cst into %[[STRIP]]
// CHECK:      scf.for %[[ROW:.*]] = %{{.*}} to %{{.*}} step
// CHECK:        scf.for %[[COLUMN:.*]] = %{{.*}} to %[[END:.*]] step
// CHECK-NEXT:     %[[LEFT:.*]] = arith.subi %[[END]], %[[COLUMN]]
// CHECK:          %[[LEAST:.*]] = arith.minsi %[[LEFT]],
// CHECK-NEXT:     %[[PART:.*]] = tile.region %[[STRIP]][0, 0] [1, %[[LEAST]]]
// CHECK-NEXT:     %[[PLACE:.*]] = tile.region %X[%[[ROW]], %[[COLUMN]]] [1, %[[LEAST]]]
// CHECK-NEXT:     tile.copy %[[PART]] to %[[PLACE]]
// HAND:      hivm.hir.pipe_barrier[<PIPE_ALL>]
// HAND-NEXT: tile.fill
// HAND-NEXT: hivm.hir.pipe_barrier[<PIPE_ALL>]
func.func @k(%X: memref<3x5000xf32, #hivm.address_space<gm>>, %Y: memref<8x6xf32, #hivm.address_space<gm>>) {
  %c1 = arith.constant 1 : index
  %cst = arith.constant 0.0 : f32
  tile.launch(%c1) sub_blocks 1 : i64 {
  ^bb0(%b: index):
    tile.fill %cst into %Y : f32 into memref<8x6xf32, #hivm.address_space<gm>>
    tile.fill %cst into %X : f32 into memref<3x5000xf32, #hivm.address_space<gm>>
  }
  return
}
