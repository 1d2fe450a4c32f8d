// RUN: tilelang-npu opt %s -p vectorise-parallel | filecheck %s
// A choice between two constants that are converted to float16 is made in float16. A number that float16 does not have is rounded
// by the conversion.
// CHECK:      %[[ONE:.*]] = arith.constant 1.000000e+00 : f16
// CHECK-NEXT: %[[ZERO:.*]] = arith.constant 0.000000e+00 : f16
// CHECK:      tile.elementwise "select" ins(%{{.*}}, %[[ONE]], %[[ZERO]] {{.*}}) outs(%y
// CHECK:      tile.elementwise "select" {{.*}} outs(%[[WIDE:[^ ]*]] : memref<8x64xf32
// CHECK-NEXT: tile.copy %[[WIDE]] to %z round "rint"
func.func @k() {
  %one = arith.constant 1.0 : f32
  %zero = arith.constant 0.0 : f32
  %third = arith.constant 0.3333 : f32
  %x = tile.alloc "x" : memref<8x64xf32, #tile.scope<shared>>
  %y = tile.alloc "y" : memref<8x64xf16, #tile.scope<shared>>
  %z = tile.alloc "z" : memref<8x64xf16, #tile.scope<shared>>
  tile.parallel [8, 64] {
  ^bb0(%i: index, %j: index):
    %a = memref.load %x[%i, %j] : memref<8x64xf32, #tile.scope<shared>>
    %above = arith.cmpf ogt, %a, %zero : f32
    %p = arith.select %above, %one, %zero : f32
    %q = arith.truncf %p : f32 to f16
    memref.store %q, %y[%i, %j] : memref<8x64xf16, #tile.scope<shared>>
    %below = arith.cmpf olt, %a, %zero : f32
    %r = arith.select %below, %third, %zero : f32
    %s = arith.truncf %r : f32 to f16
    memref.store %s, %z[%i, %j] : memref<8x64xf16, #tile.scope<shared>>
  }
  return
}
