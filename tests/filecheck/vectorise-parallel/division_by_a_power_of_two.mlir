// RUN: tilelang-npu opt %s -p vectorise-parallel | filecheck %s
// A division by a power of two is rounded like the product with the reciprocal, which takes a quarter of the time.
// CHECK:      %[[EIGHTH:.*]] = arith.constant 1.250000e-01 : f32
// CHECK-NEXT: tile.elementwise "mul" ins(%x, %[[EIGHTH]] {{.*}}) outs(%x
// CHECK:      tile.elementwise "div" ins(%y, %{{.*}}) outs(%y
// CHECK:      tile.elementwise "div" ins(%z, %{{.*}}) outs(%z
func.func @k() {
  %eight = arith.constant 8.0 : f32
  %three = arith.constant 3.0 : f32
  %huge = arith.constant 1.2676506e30 : f32
  %x = tile.alloc "x" : memref<8x64xf32, #tile.scope<shared>>
  %y = tile.alloc "y" : memref<8x64xf32, #tile.scope<shared>>
  %z = tile.alloc "z" : memref<8x64xf32, #tile.scope<shared>>
  tile.parallel [8, 64] {
  ^bb0(%i: index, %j: index):
    %a = memref.load %x[%i, %j] : memref<8x64xf32, #tile.scope<shared>>
    %p = arith.divf %a, %eight : f32
    memref.store %p, %x[%i, %j] : memref<8x64xf32, #tile.scope<shared>>
    %b = memref.load %y[%i, %j] : memref<8x64xf32, #tile.scope<shared>>
    %q = arith.divf %b, %three : f32
    memref.store %q, %y[%i, %j] : memref<8x64xf32, #tile.scope<shared>>
    %c = memref.load %z[%i, %j] : memref<8x64xf32, #tile.scope<shared>>
    %r = arith.divf %c, %huge : f32
    memref.store %r, %z[%i, %j] : memref<8x64xf32, #tile.scope<shared>>
  }
  return
}
