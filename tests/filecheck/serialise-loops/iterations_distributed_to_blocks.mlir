// RUN: tilelang-npu opt %s -p serialise-loops | filecheck %s
// Iterations that are mapped to blocks: each block executes every n-th iteration for n blocks, so all are executed with any
// number of blocks.
// CHECK-LABEL: func.func @k
// CHECK:      %[[BLOCK:.*]] = hivm.hir.get_block_idx -> i64
// CHECK-NEXT: %[[FIRST:.*]] = arith.index_cast %[[BLOCK]] : i64 to index
// CHECK-NEXT: %[[BLOCKS:.*]] = hivm.hir.get_block_num -> i64
// CHECK-NEXT: %[[STEP:.*]] = arith.index_cast %[[BLOCKS]] : i64 to index
// CHECK-NEXT: scf.for %[[TURN:.*]] = %[[FIRST]] to %{{.*}} step %[[STEP]] {
// CHECK:        memref.store %x, %m[%{{.*}}, %{{.*}}] : memref<8x16xf32>
// CHECK-NEXT: }
// CHECK-NOT: mapping
func.func @k(%m: memref<8x16xf32>, %n: index, %x: f32) {
  scf.forall (%i, %j) in (%n, 16) {
    memref.store %x, %m[%i, %j] : memref<8x16xf32>
  } {mapping = [#hivm.block, #hivm.block]}
  return
}
