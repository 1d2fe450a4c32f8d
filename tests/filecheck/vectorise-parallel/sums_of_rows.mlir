// RUN: tilelang-npu opt %s -p vectorise-parallel | filecheck %s
// s[i] += x[i, j] * x[i, j]: the products of all points, their sums along the rows, and one addition to the elements of s.
// CHECK:      tile.elementwise "mul" ins(%x, %x {{.*}}) outs(%[[PRODUCTS:.*]] :
// CHECK:      tile.reduce "reduce_sum" ins(%[[PRODUCTS]] : {{.*}}) outs(%[[SUMS:.*]] : memref<32x1xf32{{.*}}) dims = {{\[}}1]
// CHECK:      tile.elementwise "add" ins(%[[S:.*]], %[[SUMS]] : {{.*}}) outs(%[[S]] :
// CHECK-NOT:  scf.for
func.func @k() {
  %x = tile.alloc "x" : memref<32x64xf32, #tile.scope<shared>>
  %s = tile.alloc "s" : memref<32xf32, #tile.scope<shared>>
  tile.parallel [32, 64] {
  ^bb0(%i: index, %j: index):
    %a = memref.load %x[%i, %j] : memref<32x64xf32, #tile.scope<shared>>
    %old = memref.load %s[%i] : memref<32xf32, #tile.scope<shared>>
    %b = arith.mulf %a, %a : f32
    %new = arith.addf %old, %b : f32
    memref.store %new, %s[%i] : memref<32xf32, #tile.scope<shared>>
  }
  return
}
