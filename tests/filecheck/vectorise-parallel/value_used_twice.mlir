// RUN: tilelang-npu opt %s -p vectorise-parallel | filecheck %s
// The exponential is computed once, though the body has it twice and uses one of them twice. The second statement overwrites x,
// and the value has the old elements in the third one.
// CHECK:      %[[E:.*]] = tile.alloc "T.Parallel" : memref<8x64xf32, #hivm.address_space<ub>>
// CHECK-NEXT: tile.elementwise "exp" ins(%x {{.*}}) outs(%[[E]] {{.*}})
// CHECK-NEXT: tile.elementwise "mul" ins(%[[E]], %[[E]] {{.*}}) outs(%y {{.*}})
// CHECK-NEXT: tile.elementwise "add" ins(%x, %x {{.*}}) outs(%x {{.*}})
// CHECK-NEXT: tile.elementwise "add" ins(%[[E]], %x {{.*}}) outs(%y {{.*}})
func.func @k() {
  %x = tile.alloc "x" : memref<8x64xf32, #tile.scope<shared>>
  %y = tile.alloc "y" : memref<8x64xf32, #tile.scope<shared>>
  tile.parallel [8, 64] {
  ^bb0(%i: index, %j: index):
    %a = memref.load %x[%i, %j] : memref<8x64xf32, #tile.scope<shared>>
    %e = math.exp %a : f32
    %b = memref.load %x[%i, %j] : memref<8x64xf32, #tile.scope<shared>>
    %f = math.exp %b : f32
    %p = arith.mulf %e, %f : f32
    memref.store %p, %y[%i, %j] : memref<8x64xf32, #tile.scope<shared>>
    %q = arith.addf %a, %b : f32
    memref.store %q, %x[%i, %j] : memref<8x64xf32, #tile.scope<shared>>
    %c = memref.load %x[%i, %j] : memref<8x64xf32, #tile.scope<shared>>
    %r = arith.addf %e, %c : f32
    memref.store %r, %y[%i, %j] : memref<8x64xf32, #tile.scope<shared>>
  }
  return
}
