// RUN: tilelang-npu opt %s -p collapse-copies | filecheck %s
// The copy is removed: multi-buffer slots already let the next load start early.
// CHECK:      scf.for
// CHECK-NEXT:   tile.copy %X to %y
func.func @k(%X: memref<8x64xf32, #hivm.address_space<gm>>, %Y: memref<8x64xf32, #hivm.address_space<gm>>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %zero = arith.constant 0.0 : f32
  %x = tile.alloc "x" : memref<8x64xf32, #tile.scope<shared>>
  %y = tile.alloc "y" : memref<8x64xf32, #tile.scope<fragment>>
  scf.for %i = %c0 to %c4 step %c1 {
  tile.copy %X to %x : memref<8x64xf32, #hivm.address_space<gm>> to memref<8x64xf32, #tile.scope<shared>>
  tile.copy %x to %y : memref<8x64xf32, #tile.scope<shared>> to memref<8x64xf32, #tile.scope<fragment>>
  tile.elementwise "exp" ins(%y : memref<8x64xf32, #tile.scope<fragment>>) outs(%y : memref<8x64xf32, #tile.scope<fragment>>)
  tile.copy %y to %Y : memref<8x64xf32, #tile.scope<fragment>> to memref<8x64xf32, #hivm.address_space<gm>>
  } {tile.num_stages = 2 : i64}
  return
}
