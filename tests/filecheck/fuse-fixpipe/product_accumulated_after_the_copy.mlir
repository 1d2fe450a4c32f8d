// RUN: tilelang-npu opt %s -p fuse-fixpipe | filecheck %s
// The product is accumulated further before its copy is stored, so the copy stays.
// CHECK:      tile.copy %c to %out
// CHECK:      tile.gemm
// CHECK-NEXT: tile.copy %out to %C
func.func @k(%C: memref<32x48xf16, #hivm.address_space<gm>>) {
  %yes = arith.constant true
  %zero = arith.constant 0.0 : f32
  %a = tile.alloc "a" : memref<32x64xf16, #tile.scope<shared>>
  %b = tile.alloc "b" : memref<64x48xf16, #tile.scope<shared>>
  %c = tile.alloc "c" : memref<32x48xf32, #tile.scope<fragment>>
  %d = tile.alloc "d" : memref<32x48xf32, #tile.scope<shared>>
  %out = tile.alloc "out" : memref<32x48xf16, #tile.scope<shared>>
  tile.gemm %a, %b into %c init %yes : memref<32x64xf16, #tile.scope<shared>>, memref<64x48xf16, #tile.scope<shared>> into memref<32x48xf32, #tile.scope<fragment>>
  %no = arith.constant false
  tile.copy %c to %out : memref<32x48xf32, #tile.scope<fragment>> to memref<32x48xf16, #tile.scope<shared>>
  tile.gemm %a, %b into %c init %no : memref<32x64xf16, #tile.scope<shared>>, memref<64x48xf16, #tile.scope<shared>> into memref<32x48xf32, #tile.scope<fragment>>
  tile.copy %out to %C : memref<32x48xf16, #tile.scope<shared>> to memref<32x48xf16, #hivm.address_space<gm>>
  return
}
