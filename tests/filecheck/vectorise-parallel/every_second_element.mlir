// RUN: tilelang-npu opt %s -p vectorise-parallel | filecheck %s
// Elements at even and at odd indices of rows: one operation de-interleaves them.
// CHECK:      tile.call "deinterleave" ins(%x : {{.*}}) outs(%[[EVEN:.*]], %[[ODD:.*]] : memref<16x64xf32, {{.*}}>, {{.*}}) {index_mode = "ALL_CHANNELS"}
// CHECK-NEXT: tile.elementwise "mul" ins(%[[EVEN]], %[[ODD]] : {{.*}}) outs(%y :
// CHECK-NOT:  scf.for
func.func @k() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %c63 = arith.constant 63 : index
  %x = tile.alloc "x" : memref<16x128xf32, #tile.scope<shared>>
  %y = tile.alloc "y" : memref<16x64xf32, #tile.scope<shared>>
  tile.parallel [16, 64] {
  ^bb0(%i: index, %j: index):
    %m = arith.muli %j, %c2 : index
    %n = arith.addi %m, %c1 : index
    %a = memref.load %x[%i, %m] : memref<16x128xf32, #tile.scope<shared>>
    %b = memref.load %x[%i, %n] : memref<16x128xf32, #tile.scope<shared>>
    %s = arith.mulf %a, %b : f32
    memref.store %s, %y[%i, %j] : memref<16x64xf32, #tile.scope<shared>>
  }
  return
}
