// RUN: tilelang-npu opt %s -p vectorise-parallel | filecheck %s
// y[i, j] = X[n[i], j]: the index selects a row, so each row is a copy.
// CHECK:      scf.for %i
// CHECK:        memref.load %n
// CHECK-NOT:    scf.for
// CHECK:        tile.region %X[%{{.*}}, 0] [1, 64]
// CHECK:        tile.copy
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
