// RUN: tilelang-npu opt %s -p sink-buffers | filecheck %s
// The inner loop may have no iteration, or overwrites the accumulator only in its second iteration, so the old value is
// read.
// CHECK:      tile.alloc "second"
// CHECK-NEXT: tile.alloc "perhaps"
// CHECK-NEXT: scf.for
// CHECK-NEXT: scf.for
func.func @k(%A: memref<16x16xf16, #hivm.address_space<cbuf>>, %B: memref<16x16xf16, #hivm.address_space<cbuf>>, %Y: memref<16x16xf32, #hivm.address_space<gm>>, %N: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %second = tile.alloc "second" : memref<16x16xf32, #hivm.address_space<cc>>
  %perhaps = tile.alloc "perhaps" : memref<16x16xf32, #hivm.address_space<cc>>
  scf.for %i = %c0 to %c4 step %c1 {
    scf.for %k = %c0 to %c4 step %c1 {
      %late = arith.cmpi eq, %k, %c1 : index
      tile.gemm %A, %B into %second init %late : memref<16x16xf16, #hivm.address_space<cbuf>>, memref<16x16xf16, #hivm.address_space<cbuf>> into memref<16x16xf32, #hivm.address_space<cc>>
    }
    %less = arith.subi %N, %i : index
    scf.for %k = %c0 to %less step %c1 {
      %start = arith.cmpi eq, %k, %c0 : index
      tile.gemm %A, %B into %perhaps init %start : memref<16x16xf16, #hivm.address_space<cbuf>>, memref<16x16xf16, #hivm.address_space<cbuf>> into memref<16x16xf32, #hivm.address_space<cc>>
    }
    tile.copy %second to %Y : memref<16x16xf32, #hivm.address_space<cc>> to memref<16x16xf32, #hivm.address_space<gm>>
    tile.copy %perhaps to %Y : memref<16x16xf32, #hivm.address_space<cc>> to memref<16x16xf32, #hivm.address_space<gm>>
  }
  return
}
