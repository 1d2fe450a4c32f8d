// RUN: tilelang-npu opt %s -p vectorise-parallel | filecheck %s
// Two statements write all of the elements: one operation interleaves them, in groups of rows for which its scratch is
// small.
// CHECK:      tile.elementwise "exp" ins(%x : {{.*}}) outs(%[[ODD:.*]] : memref<16x64xf32
// CHECK:      scf.for
// CHECK:        %[[A:.*]] = tile.region %x[%{{.*}}, 0] [4, 64]
// CHECK-NEXT:   %[[B:.*]] = tile.region %[[ODD]][%{{.*}}, 0] [4, 64]
// CHECK-NEXT:   %[[Y:.*]] = tile.region %y[%{{.*}}, 0] [4, 128]
// CHECK-NEXT:   tile.call "interleave" ins(%[[A]], %[[B]] : {{.*}}) outs(%[[Y]] :
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
    memref.store %a, %y[%i, %m] : memref<16x128xf32, #tile.scope<shared>>
    %b = math.exp %a : f32
    memref.store %b, %y[%i, %n] : memref<16x128xf32, #tile.scope<shared>>
  }
  return
}
