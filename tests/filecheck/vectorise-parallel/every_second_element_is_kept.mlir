// RUN: tilelang-npu opt %s -p vectorise-parallel | filecheck %s
// The elements at even indices keep their values: they are de-interleaved, and interleaved with the written elements.
// CHECK:      tile.call "deinterleave" ins(%y : {{.*}}) outs(%[[EVEN:.*]] : memref<16x64xf32, {{.*}}>) {index_mode = "CHANNEL_0"}
// CHECK:      scf.for
// CHECK:        %[[A:.*]] = tile.region %[[EVEN]][
// CHECK-NEXT:   %[[B:.*]] = tile.region %x[
// CHECK:        tile.call "interleave" ins(%[[A]], %[[B]] :
// CHECK-NOT:  memref.store
func.func @k() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %c63 = arith.constant 63 : index
  %x = tile.alloc "x" : memref<16x64xf32, #tile.scope<shared>>
  %y = tile.alloc "y" : memref<16x128xf32, #tile.scope<shared>>
  tile.parallel [16, 64] {
  ^bb0(%i: index, %j: index):
    %m = arith.muli %j, %c2 : index
    %n = arith.addi %m, %c1 : index
    %a = memref.load %x[%i, %j] : memref<16x64xf32, #tile.scope<shared>>
    memref.store %a, %y[%i, %n] : memref<16x128xf32, #tile.scope<shared>>
  }
  return
}
