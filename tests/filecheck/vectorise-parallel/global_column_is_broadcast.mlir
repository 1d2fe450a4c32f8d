// RUN: tilelang-npu opt %s -p vectorise-parallel | filecheck %s
// y[i, j] = X[i] with X in GM: the column is copied to UB, and broadcast there.
// CHECK:      tile.copy %{{.*}} to %[[COLUMN:.*]] : memref<16x1xf32, strided<[1, 1]>, #hivm.address_space<gm>> to memref<16x1xf32, #hivm.address_space<ub>>
// CHECK:      tile.broadcast %[[COLUMN]] to %y
// CHECK-NOT:  scf.for
// CHECK:      return
func.func @k(%X: memref<16xf32, #hivm.address_space<gm>>) {
  %y = tile.alloc "y" : memref<16x64xf32, #tile.scope<shared>>
  tile.parallel [16, 64] {
  ^bb0(%i: index, %j: index):
    %a = memref.load %X[%i] : memref<16xf32, #hivm.address_space<gm>>
    memref.store %a, %y[%i, %j] : memref<16x64xf32, #tile.scope<shared>>
  }
  return
}
