// RUN: tilelang-npu opt %s -p vectorise-parallel{synchronise=false} | filecheck %s
// The author sets the waits, and could set none between vectorised rows: the points are computed one by one.
// CHECK:      scf.for %i
// CHECK:        scf.for %j
// CHECK-NOT:      tile.copy
// CHECK:          memref.store
func.func @k(%X: memref<40x64xf32, #hivm.address_space<gm>>) {
  %c1 = arith.constant 1 : index
  tile.launch(%c1) sub_blocks 1 : i64 {
  ^bb0(%block: index):
    %n = tile.alloc "n" : memref<16xi32, #tile.scope<shared>>
    %y = tile.alloc "y" : memref<16x64xf32, #tile.scope<shared>>
    tile.parallel [16, 64] {
    ^bb0(%i: index, %j: index):
      %read = memref.load %n[%i] : memref<16xi32, #tile.scope<shared>>
      %row = arith.index_cast %read : i32 to index
      %v = memref.load %X[%row, %j] : memref<40x64xf32, #hivm.address_space<gm>>
      memref.store %v, %y[%i, %j] : memref<16x64xf32, #tile.scope<shared>>
    }
  }
  return
}
