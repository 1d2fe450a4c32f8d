// RUN: tilelang-npu opt %s -p assign-cores,sink-buffers | filecheck %s
// Each iteration initialises %a and drains it: two slots let the next product run in parallel. The same holds for %b, in a
// later loop, and both share bytes. With %c, two slots of %d do not fit in the 128 KB of L0C. The value of %e is
// loop-carried.
// CHECK:     tile.alloc "e" :
// CHECK:     scf.for
// CHECK:     tile.alloc "a" slots 2
// CHECK:     scf.for
// CHECK:     tile.alloc "b" slots 2
// CHECK:     scf.for
// CHECK-DAG: tile.alloc "c" slots 2
// CHECK-DAG: tile.alloc "d" :
func.func @k(%Y: memref<128x128xf32, #hivm.address_space<gm>>) attributes {hacc.entry} {
  %c4 = arith.constant 4 : index
  tile.launch(%c4) sub_blocks 1 : i64 {
  ^bb0(%block: index):
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %true = arith.constant true
    %false = arith.constant false
    %q = tile.alloc "q" : memref<128x128xf16, #hivm.address_space<cbuf>>
    %p = tile.alloc "p" : memref<16x128xf16, #hivm.address_space<cbuf>>
    %r = tile.alloc "r" : memref<128x112xf16, #hivm.address_space<cbuf>>
    %e = tile.alloc "e" : memref<16x112xf32, #hivm.address_space<cc>>
    %a = tile.alloc "a" : memref<128x112xf32, #hivm.address_space<cc>>
    %b = tile.alloc "b" : memref<128x112xf32, #hivm.address_space<cc>>
    %c = tile.alloc "c" : memref<128x112xf32, #hivm.address_space<cc>>
    %d = tile.alloc "d" : memref<16x112xf32, #hivm.address_space<cc>>
    scf.for %i = %c0 to %c4 step %c1 {
      tile.gemm %q, %r into %a init %true : memref<128x128xf16, #hivm.address_space<cbuf>>, memref<128x112xf16, #hivm.address_space<cbuf>> into memref<128x112xf32, #hivm.address_space<cc>>
      %to = tile.region %Y[0, 0] [128, 112] keep [0, 1] : memref<128x128xf32, #hivm.address_space<gm>> to memref<128x112xf32, strided<[128, 1]>, #hivm.address_space<gm>>
      tile.copy %a to %to : memref<128x112xf32, #hivm.address_space<cc>> to memref<128x112xf32, strided<[128, 1]>, #hivm.address_space<gm>>
    } {tile.num_stages = 2 : i64}
    scf.for %i = %c0 to %c4 step %c1 {
      tile.gemm %q, %r into %b init %true : memref<128x128xf16, #hivm.address_space<cbuf>>, memref<128x112xf16, #hivm.address_space<cbuf>> into memref<128x112xf32, #hivm.address_space<cc>>
      %to = tile.region %Y[0, 0] [128, 112] keep [0, 1] : memref<128x128xf32, #hivm.address_space<gm>> to memref<128x112xf32, strided<[128, 1]>, #hivm.address_space<gm>>
      tile.copy %b to %to : memref<128x112xf32, #hivm.address_space<cc>> to memref<128x112xf32, strided<[128, 1]>, #hivm.address_space<gm>>
      tile.gemm %p, %r into %e init %false : memref<16x128xf16, #hivm.address_space<cbuf>>, memref<128x112xf16, #hivm.address_space<cbuf>> into memref<16x112xf32, #hivm.address_space<cc>>
    } {tile.num_stages = 2 : i64}
    scf.for %i = %c0 to %c4 step %c1 {
      tile.gemm %q, %r into %c init %true : memref<128x128xf16, #hivm.address_space<cbuf>>, memref<128x112xf16, #hivm.address_space<cbuf>> into memref<128x112xf32, #hivm.address_space<cc>>
      %to = tile.region %Y[0, 0] [128, 112] keep [0, 1] : memref<128x128xf32, #hivm.address_space<gm>> to memref<128x112xf32, strided<[128, 1]>, #hivm.address_space<gm>>
      tile.copy %c to %to : memref<128x112xf32, #hivm.address_space<cc>> to memref<128x112xf32, strided<[128, 1]>, #hivm.address_space<gm>>
      tile.gemm %p, %r into %d init %true : memref<16x128xf16, #hivm.address_space<cbuf>>, memref<128x112xf16, #hivm.address_space<cbuf>> into memref<16x112xf32, #hivm.address_space<cc>>
      %less = tile.region %Y[0, 0] [16, 112] keep [0, 1] : memref<128x128xf32, #hivm.address_space<gm>> to memref<16x112xf32, strided<[128, 1]>, #hivm.address_space<gm>>
      tile.copy %d to %less : memref<16x112xf32, #hivm.address_space<cc>> to memref<16x112xf32, strided<[128, 1]>, #hivm.address_space<gm>>
    } {tile.num_stages = 2 : i64}
  }
  return
}
