// RUN: tilelang-npu opt %s -p vectorise-parallel | filecheck %s
// x[i, j] = exp(x[i, j] - m[i]): a difference with a broadcast column, then the function in place.
// CHECK-NOT:  tile.parallel
// CHECK:      %[[M:.*]] = tile.view %m : {{.*}} to memref<8x1xf32
// CHECK:      tile.elementwise "sub" ins(%x, %[[M]] : {{.*}}) outs(%[[T:.*]] : memref<8x64xf32
// CHECK-NEXT: tile.elementwise "exp" ins(%[[T]] : {{.*}}) outs(%x :
func.func @k() {
  %x = tile.alloc "x" : memref<8x64xf32, #tile.scope<shared>>
  %m = tile.alloc "m" : memref<8xf32, #tile.scope<shared>>
  tile.parallel [8, 64] {
  ^bb0(%i: index, %j: index):
    %a = memref.load %x[%i, %j] : memref<8x64xf32, #tile.scope<shared>>
    %b = memref.load %m[%i] : memref<8xf32, #tile.scope<shared>>
    %d = arith.subf %a, %b : f32
    %e = math.exp %d : f32
    memref.store %e, %x[%i, %j] : memref<8x64xf32, #tile.scope<shared>>
  }
  return
}
