// RUN: tilelang-npu opt %s -p fuse-fixpipe | filecheck %s
// The maximum of the product and zero, then a conversion: both become one fixpipe.
// CHECK-NOT:  "d"
// CHECK:      tile.copy %c to %C relu round "rint"
// CHECK-NEXT: return
func.func @k(%C: memref<32x48xf16, #hivm.address_space<gm>>) {
  %yes = arith.constant true
  %zero = arith.constant 0.0 : f32
  %a = tile.alloc "a" : memref<32x64xf16, #tile.scope<shared>>
  %b = tile.alloc "b" : memref<64x48xf16, #tile.scope<shared>>
  %c = tile.alloc "c" : memref<32x48xf32, #tile.scope<fragment>>
  %d = tile.alloc "d" : memref<32x48xf32, #tile.scope<shared>>
  %out = tile.alloc "out" : memref<32x48xf16, #tile.scope<shared>>
  tile.gemm %a, %b into %c init %yes : memref<32x64xf16, #tile.scope<shared>>, memref<64x48xf16, #tile.scope<shared>> into memref<32x48xf32, #tile.scope<fragment>>
  tile.elementwise "max" ins(%c, %zero : memref<32x48xf32, #tile.scope<fragment>>, f32) outs(%d : memref<32x48xf32, #tile.scope<shared>>)
  tile.elementwise "cast" ins(%d : memref<32x48xf32, #tile.scope<shared>>) outs(%out : memref<32x48xf16, #tile.scope<shared>>)
  tile.copy %out to %C : memref<32x48xf16, #tile.scope<shared>> to memref<32x48xf16, #hivm.address_space<gm>>
  return
}
