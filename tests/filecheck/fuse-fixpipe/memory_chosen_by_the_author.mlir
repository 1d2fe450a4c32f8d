// RUN: tilelang-npu opt %s -p fuse-fixpipe | filecheck %s
// A buffer whose memory the author chose stays, and so do the operations on it.
// CHECK:      tile.copy %c to %out
// CHECK-NEXT: tile.copy %out to %C
func.func @k(%C: memref<32x48xf16, #hivm.address_space<gm>>) {
  %yes = arith.constant true
  %zero = arith.constant 0.0 : f32
  %a = tile.alloc "a" : memref<32x64xf16, #tile.scope<shared>>
  %b = tile.alloc "b" : memref<64x48xf16, #tile.scope<shared>>
  %c = tile.alloc "c" : memref<32x48xf32, #tile.scope<fragment>>
  %d = tile.alloc "d" : memref<32x48xf32, #tile.scope<shared>>
  %out = tile.alloc "out" : memref<32x48xf16, #hivm.address_space<ub>>
  tile.gemm %a, %b into %c init %yes : memref<32x64xf16, #tile.scope<shared>>, memref<64x48xf16, #tile.scope<shared>> into memref<32x48xf32, #tile.scope<fragment>>
  tile.copy %c to %out : memref<32x48xf32, #tile.scope<fragment>> to memref<32x48xf16, #hivm.address_space<ub>>
  tile.copy %out to %C : memref<32x48xf16, #hivm.address_space<ub>> to memref<32x48xf16, #hivm.address_space<gm>>
  return
}
