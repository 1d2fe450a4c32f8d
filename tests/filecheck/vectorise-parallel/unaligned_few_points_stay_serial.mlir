// RUN: tilelang-npu opt %s -p vectorise-parallel | filecheck %s
// One column to another, neither aligned to a block: a temporary tile would take longer than the points one by one.
// CHECK-NOT: "T.Parallel"
// CHECK:     scf.for
// CHECK-NEXT:  memref.load
// CHECK-NEXT:  memref.store
func.func @k() {
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %x = tile.alloc "x" : memref<8x64xf32, #tile.scope<shared>>
  tile.parallel [8] {
  ^bb0(%i: index):
    %a = memref.load %x[%i, %c3] : memref<8x64xf32, #tile.scope<shared>>
    memref.store %a, %x[%i, %c1] : memref<8x64xf32, #tile.scope<shared>>
  }
  return
}
