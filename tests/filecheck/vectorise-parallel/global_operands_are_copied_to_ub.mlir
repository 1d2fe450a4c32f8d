// RUN: tilelang-npu opt %s -p vectorise-parallel | filecheck %s
// An operand in GM is copied to UB, a destination in GM from it.
// CHECK:      tile.copy %X to %[[IN:.*]] :
// CHECK-NEXT: tile.elementwise "exp" ins(%[[IN]] : {{.*}}) outs(%[[OUT:.*]] :
// CHECK-NEXT: tile.copy %[[OUT]] to %Y
func.func @k(%X: memref<64xf32, #hivm.address_space<gm>>, %Y: memref<64xf32, #hivm.address_space<gm>>) {
  tile.parallel [64] {
  ^bb0(%i: index):
    %a = memref.load %X[%i] : memref<64xf32, #hivm.address_space<gm>>
    %e = math.exp %a : f32
    memref.store %e, %Y[%i] : memref<64xf32, #hivm.address_space<gm>>
  }
  return
}
