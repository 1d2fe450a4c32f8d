// RUN: tilelang-npu opt %s -p fuse-fixpipe | filecheck %s
// A product that is copied only for a conversion of the element type: one copy remains.
// CHECK-NOT:  "out"
// CHECK:      tile.gemm
// CHECK-NEXT: tile.copy %c to %C round "rint"
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
  tile.copy %c to %out : memref<32x48xf32, #tile.scope<fragment>> to memref<32x48xf16, #tile.scope<shared>>
  tile.copy %out to %C : memref<32x48xf16, #tile.scope<shared>> to memref<32x48xf16, #hivm.address_space<gm>>
  return
}
