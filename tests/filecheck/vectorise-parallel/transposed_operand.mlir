// RUN: tilelang-npu opt %s -p vectorise-parallel | filecheck %s
// The rows of an operand are columns of the iteration space.
// CHECK:      tile.call "transpose" ins(%b : {{.*}}) outs(%[[T:.*]] : memref<64x64xf32, {{.*}}>) {permutation = array<i64: 1, 0>}
// CHECK-NEXT: tile.elementwise "add" ins(%a, %[[T]] : {{.*}}) outs(%y :
// CHECK-NOT:  scf.for
func.func @k() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %c63 = arith.constant 63 : index
  %a = tile.alloc "a" : memref<64x64xf32, #tile.scope<shared>>
  %b = tile.alloc "b" : memref<64x64xf32, #tile.scope<shared>>
  %y = tile.alloc "y" : memref<64x64xf32, #tile.scope<shared>>
  tile.parallel [64, 64] {
  ^bb0(%i: index, %j: index):
    %p = memref.load %a[%i, %j] : memref<64x64xf32, #tile.scope<shared>>
    %q = memref.load %b[%j, %i] : memref<64x64xf32, #tile.scope<shared>>
    %s = arith.addf %p, %q : f32
    memref.store %s, %y[%i, %j] : memref<64x64xf32, #tile.scope<shared>>
  }
  return
}
