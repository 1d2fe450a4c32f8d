// RUN: tilelang-npu opt %s -p fuse-fixpipe | filecheck %s
// The fixpipe applies no factor in float32: the multiplication and its buffers stay.
// CHECK:      tile.gemm
// CHECK-NEXT: tile.elementwise "mul"
// CHECK-NEXT: tile.copy
func.func @k(%C: memref<32x48xf16, #hivm.address_space<gm>>) {
  %yes = arith.constant true
  %half = arith.constant 0.5 : f32
  %a = tile.alloc "a" : memref<32x64xf16, #tile.scope<shared>>
  %b = tile.alloc "b" : memref<64x48xf16, #tile.scope<shared>>
  %c = tile.alloc "c" : memref<32x48xf32, #tile.scope<fragment>>
  %d = tile.alloc "d" : memref<32x48xf32, #tile.scope<shared>>
  tile.gemm %a, %b into %c init %yes : memref<32x64xf16, #tile.scope<shared>>, memref<64x48xf16, #tile.scope<shared>> into memref<32x48xf32, #tile.scope<fragment>>
  tile.elementwise "mul" ins(%c, %half : memref<32x48xf32, #tile.scope<fragment>>, f32) outs(%d : memref<32x48xf32, #tile.scope<shared>>)
  tile.copy %d to %C : memref<32x48xf32, #tile.scope<shared>> to memref<32x48xf16, #hivm.address_space<gm>>
  return
}
