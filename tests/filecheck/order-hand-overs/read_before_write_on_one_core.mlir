// RUN: tilelang-npu opt %s -p order-hand-overs | filecheck %s
// A buffer of one core that is read before it is written is a mistake, not a channel: nothing moves.
// CHECK:      scf.for
// CHECK-NEXT:   tile.elementwise "exp" ins(%x
// CHECK-NEXT:   tile.fill {{.*}} into %x
func.func @k(%v: f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %x = tile.alloc "x" : memref<8xf32, #tile.scope<shared>>
  %y = tile.alloc "y" : memref<8xf32, #tile.scope<shared>>
  scf.for %k = %c0 to %c4 step %c1 {
    tile.elementwise "exp" ins(%x : memref<8xf32, #tile.scope<shared>>) outs(%y : memref<8xf32, #tile.scope<shared>>)
    tile.fill %v into %x : f32 into memref<8xf32, #tile.scope<shared>>
  }
  return
}
