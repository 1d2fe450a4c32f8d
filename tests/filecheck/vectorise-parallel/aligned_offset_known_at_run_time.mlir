// RUN: tilelang-npu opt %s -p vectorise-parallel | filecheck %s
// The offset is known only at run time, but is aligned to a block: 16 elements of float32 in each step. The sum is computed
// twice, and is recognised as one offset.
// CHECK:      %[[X:.*]] = tile.region %x[0, %{{.*}}] [8, 16]
// CHECK:      tile.elementwise "exp" ins(%{{.*}}) outs(%{{.*}})
// CHECK-NOT:  memref.load
func.func @k() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c16 = arith.constant 16 : index
  %x = tile.alloc "x" : memref<8x64xf32, #tile.scope<shared>>
  scf.for %k = %c0 to %c4 step %c1 {
    tile.parallel [8, 16] {
    ^bb0(%i: index, %j: index):
      %p = arith.muli %k, %c16 : index
      %n = arith.addi %p, %j : index
      %a = memref.load %x[%i, %n] : memref<8x64xf32, #tile.scope<shared>>
      %e = math.exp %a : f32
      %q = arith.muli %k, %c16 : index
      %m = arith.addi %q, %j : index
      memref.store %e, %x[%i, %m] : memref<8x64xf32, #tile.scope<shared>>
    }
  }
  return
}
