// RUN: tilelang-npu opt %s -p vectorise-parallel | filecheck %s
// v[0] and v[1] hold values of one point: the loop over them is unrolled, and reads become the assigned values.
// CHECK-NOT:  scope<local>
// CHECK:      tile.elementwise "exp" ins(%x {{.*}})
// CHECK:      tile.elementwise "add"
// CHECK-NOT:  scf.for
func.func @k() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %x = tile.alloc "x" : memref<32x64xf32, #tile.scope<shared>>
  %y = tile.alloc "y" : memref<32x64xf32, #tile.scope<shared>>
  %v = tile.alloc "v" : memref<2xf32, #tile.scope<local>>
  tile.parallel [32, 64] {
  ^bb0(%i: index, %j: index):
    %a = memref.load %x[%i, %j] : memref<32x64xf32, #tile.scope<shared>>
    scf.for %k = %c0 to %c2 step %c1 {
      %e = math.exp %a : f32
      memref.store %e, %v[%k] : memref<2xf32, #tile.scope<local>>
    }
    %first = memref.load %v[%c0] : memref<2xf32, #tile.scope<local>>
    %second = memref.load %v[%c1] : memref<2xf32, #tile.scope<local>>
    %sum = arith.addf %first, %second : f32
    memref.store %sum, %y[%i, %j] : memref<32x64xf32, #tile.scope<shared>>
  }
  return
}
