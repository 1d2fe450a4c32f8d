// RUN: tilelang-npu opt %s -p vectorise-parallel | filecheck %s
// x[i + 1] = x[i]: a point reads an element that another writes, so the order of the points matters and the loop stays
// scalar.
// CHECK-NOT: tile.elementwise
// CHECK-NOT: tile.copy
// CHECK:     scf.for
// CHECK:       memref.load
// CHECK:       memref.store
func.func @k() {
  %c1 = arith.constant 1 : index
  %x = tile.alloc "x" : memref<65xf32, #tile.scope<shared>>
  tile.parallel [64] {
  ^bb0(%i: index):
    %a = memref.load %x[%i] : memref<65xf32, #tile.scope<shared>>
    %n = arith.addi %i, %c1 : index
    memref.store %a, %x[%n] : memref<65xf32, #tile.scope<shared>>
  }
  return
}
