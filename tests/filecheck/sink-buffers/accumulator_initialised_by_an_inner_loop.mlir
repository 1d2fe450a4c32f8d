// RUN: tilelang-npu opt %s -p sink-buffers | filecheck %s
// An inner loop with at least one iteration overwrites the accumulator in its first iteration, so nothing is carried between
// iterations of the outer loop. An accumulator that is initialised only in the outer loop's first iteration stays outside.
// CHECK:      tile.alloc "carried"
// CHECK-NEXT: scf.for
// CHECK-NEXT: tile.alloc "fresh"
// CHECK-NEXT: scf.for
func.func @k(%A: memref<16x16xf16, #hivm.address_space<cbuf>>, %B: memref<16x16xf16, #hivm.address_space<cbuf>>, %Y: memref<16x16xf32, #hivm.address_space<gm>>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %fresh = tile.alloc "fresh" : memref<16x16xf32, #hivm.address_space<cc>>
  %carried = tile.alloc "carried" : memref<16x16xf32, #hivm.address_space<cc>>
  scf.for %i = %c0 to %c4 step %c1 {
    scf.for %k = %c1 to %c4 step %c1 {
      %start = arith.cmpi sle, %k, %c1 : index
      %once = arith.cmpi eq, %i, %c0 : index
      %both = arith.andi %start, %once : i1
      tile.gemm %A, %B into %fresh init %start : memref<16x16xf16, #hivm.address_space<cbuf>>, memref<16x16xf16, #hivm.address_space<cbuf>> into memref<16x16xf32, #hivm.address_space<cc>>
      tile.gemm %A, %B into %carried init %both : memref<16x16xf16, #hivm.address_space<cbuf>>, memref<16x16xf16, #hivm.address_space<cbuf>> into memref<16x16xf32, #hivm.address_space<cc>>
    }
    tile.copy %fresh to %Y : memref<16x16xf32, #hivm.address_space<cc>> to memref<16x16xf32, #hivm.address_space<gm>>
    tile.copy %carried to %Y : memref<16x16xf32, #hivm.address_space<cc>> to memref<16x16xf32, #hivm.address_space<gm>>
  }
  return
}
