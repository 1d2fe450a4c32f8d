// RUN: tilelang-npu opt %s -p vectorise-parallel | filecheck %s
// s[n] = s[n] - x[i, j]: s[n] begins at no block of UB, and the scalar unit subtracts the sum of the points from it.
// CHECK:      tile.reduce "reduce_sum" ins(%x : {{.*}}) outs(%[[ROW:.*]] : memref<1x64xf32{{.*}}) dims = {{\[}}0]
// CHECK:      tile.reduce "reduce_sum" ins(%[[ROW]] : {{.*}}) outs(%[[SUM:.*]] : memref<1x1xf32{{.*}}) dims = {{\[}}1]
// CHECK-NOT:  scf.for
// CHECK:      %[[OLD:.*]] = memref.load %s[%n]
// CHECK-NEXT: %[[ALL:.*]] = memref.load %[[SUM]][
// CHECK-NEXT: %[[NEW:.*]] = arith.subf %[[OLD]], %[[ALL]]
// CHECK-NEXT: memref.store %[[NEW]], %s[%n]
func.func @k(%n: index) {
  %x = tile.alloc "x" : memref<32x64xf32, #tile.scope<shared>>
  %s = tile.alloc "s" : memref<32xf32, #tile.scope<shared>>
  tile.parallel [32, 64] {
  ^bb0(%i: index, %j: index):
    %a = memref.load %x[%i, %j] : memref<32x64xf32, #tile.scope<shared>>
    %old = memref.load %s[%n] : memref<32xf32, #tile.scope<shared>>
    %new = arith.subf %old, %a : f32
    memref.store %new, %s[%n] : memref<32xf32, #tile.scope<shared>>
  }
  return
}
