// RUN: tilelang-npu opt %s -p expand-composites | filecheck %s
// RUN: tilelang-npu opt %s -p "expand-composites{by_hand=true}" | filecheck %s --check-prefix=HAND
// There is no path from GM to GM: the tensor is copied through a tile of at most 16384 bytes in UB, with the source's
// element type.
// CHECK:      %[[SMALL:.*]] = tile.alloc "S_to_T" : memref<8x6xf32, #hivm.address_space<ub>>
// CHECK-NEXT: tile.copy %S to %[[SMALL]] pad %cst
// CHECK-NEXT: tile.copy %[[SMALL]] to %T
// CHECK:      %[[STRIP:.*]] = tile.alloc "X_to_Y" : memref<1x4096xf32, #hivm.address_space<ub>>
// CHECK:      scf.for %[[ROW:.*]] = %{{.*}} to %{{.*}} step
// CHECK:        scf.for %[[COLUMN:.*]] = %{{.*}} to %[[END:.*]] step
// CHECK-NEXT:     %[[LEFT:.*]] = arith.subi %[[END]], %[[COLUMN]]
// CHECK:          %[[LEAST:.*]] = arith.minsi %[[LEFT]],
// CHECK-NEXT:     %[[PART:.*]] = tile.region %[[STRIP]][0, 0] [1, %[[LEAST]]]
// CHECK-NEXT:     %[[FROM:.*]] = tile.region %X[%[[ROW]], %[[COLUMN]]] [1, %[[LEAST]]]
// CHECK-NEXT:     %[[TO:.*]] = tile.region %Y[%[[ROW]], %[[COLUMN]]] [1, %[[LEAST]]]
// CHECK-NEXT:     tile.copy %[[FROM]] to %[[PART]]
// CHECK-NEXT:     tile.copy %[[PART]] to %[[TO]]
// HAND:      hivm.hir.pipe_barrier[<PIPE_ALL>]
// HAND-NEXT: tile.copy
// HAND-NEXT: hivm.hir.pipe_barrier[<PIPE_ALL>]
// HAND-NEXT: tile.copy
// HAND-NEXT: hivm.hir.pipe_barrier[<PIPE_ALL>]
func.func @k(%X: memref<3x5000xf32, #hivm.address_space<gm>>, %Y: memref<3x5000xf16, #hivm.address_space<gm>>, %S: memref<8x6xf32, #hivm.address_space<gm>>, %T: memref<8x6xf16, #hivm.address_space<gm>>) {
  %c1 = arith.constant 1 : index
  %cst = arith.constant 2.0 : f32
  tile.launch(%c1) sub_blocks 1 : i64 {
  ^bb0(%b: index):
    tile.copy %S to %T pad %cst : f32 : memref<8x6xf32, #hivm.address_space<gm>> to memref<8x6xf16, #hivm.address_space<gm>>
    tile.copy %X to %Y : memref<3x5000xf32, #hivm.address_space<gm>> to memref<3x5000xf16, #hivm.address_space<gm>>
  }
  return
}
