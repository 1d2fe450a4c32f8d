// RUN: tilelang-npu opt %s -p vectorise-parallel | filecheck %s
// The rows of the target are columns of the iteration space, and its size is no multiple of the squares that the unit
// transposes: the unit transposes the squares that contain it.
// CHECK:      tile.elementwise "exp" ins(%a : {{.*}}) outs(%[[E:.*]] : memref<20x40xf16
// CHECK:      %[[PART:.*]] = tile.region %[[WIDE:.*]][0, 0] [20, 40]
// CHECK-NEXT: tile.copy %[[E]] to %[[PART]]
// CHECK:      tile.call "transpose" ins(%[[WIDE]] : memref<32x48xf16, {{.*}}>) outs(%[[T:.*]] : memref<48x32xf16
// CHECK-NEXT: %[[BACK:.*]] = tile.region %[[T]][0, 0] [40, 20]
// CHECK-NEXT: tile.copy %[[BACK]] to %y
// CHECK-NOT:  scf.for
func.func @k() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %c63 = arith.constant 63 : index
  %a = tile.alloc "a" : memref<20x40xf16, #tile.scope<shared>>
  %y = tile.alloc "y" : memref<40x20xf16, #tile.scope<shared>>
  tile.parallel [20, 40] {
  ^bb0(%i: index, %j: index):
    %p = memref.load %a[%i, %j] : memref<20x40xf16, #tile.scope<shared>>
    %q = math.exp %p : f16
    memref.store %q, %y[%j, %i] : memref<40x20xf16, #tile.scope<shared>>
  }
  return
}
