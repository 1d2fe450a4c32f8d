// RUN: tilelang-npu opt %s -p vectorise-parallel | filecheck %s
// The first and the third of every four: de-interleaving takes the elements at even indices, and of these both halves.
// CHECK:      tile.call "deinterleave" ins(%x : {{.*}}) outs(%[[HALF:.*]] : memref<16x128xf16, {{.*}}>) {index_mode = "CHANNEL_0"}
// CHECK:      tile.call "deinterleave" ins(%[[HALF]] : {{.*}}) outs(%[[A:.*]], %[[B:.*]] : {{.*}}) {index_mode = "ALL_CHANNELS"}
// CHECK-NEXT: tile.elementwise "mul" ins(%[[A]], %[[B]] : {{.*}}) outs(%y :
// CHECK-NOT:  scf.for
func.func @k() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %c63 = arith.constant 63 : index
  %x = tile.alloc "x" : memref<16x256xf16, #tile.scope<shared>>
  %y = tile.alloc "y" : memref<16x64xf16, #tile.scope<shared>>
  tile.parallel [16, 64] {
  ^bb0(%i: index, %j: index):
    %m = arith.muli %j, %c4 : index
    %n = arith.addi %m, %c2 : index
    %a = memref.load %x[%i, %m] : memref<16x256xf16, #tile.scope<shared>>
    %b = memref.load %x[%i, %n] : memref<16x256xf16, #tile.scope<shared>>
    %s = arith.mulf %a, %b : f16
    memref.store %s, %y[%i, %j] : memref<16x64xf16, #tile.scope<shared>>
  }
  return
}
