// RUN: tilelang-npu opt %s -p assign-cores,overlap-iterations | filecheck %s
// The load for the second product waits for no other core: it is in a branch before the one whose loads wait for the Vector
// core. A tensor in GM gets one slot more than the number of overlapped iterations if a value returns later.
// CHECK-DAG:  tile.alloc "w" slots 3
// CHECK-DAG:  tile.alloc "v" slots 2
// CHECK:      tile.copy %x to
// CHECK:      scf.if
// CHECK:        tile.copy %{{.*}} to %vv
// CHECK-NEXT: }
// CHECK:      scf.if
// CHECK-NOT:  scf.if
// CHECK:        tile.copy %{{.*}} to %a
// CHECK-NEXT:   tile.gemm %a, %vv into %d
func.func @k(%A: memref<128x16xf32, #hivm.address_space<gm>>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %true = arith.constant true
  tile.launch(%c1) sub_blocks 1 : i64 {
  ^bb0(%block: index):
    %q = tile.alloc "q" : memref<16x16xf32, #hivm.address_space<cbuf>>
    %sum = tile.alloc "sum" : memref<16x16xf32, #hivm.address_space<ub>>
    scf.for %i = %c0 to %c8 step %c1 {
      %c = tile.alloc "c" : memref<16x16xf32, #hivm.address_space<cc>>
      %d = tile.alloc "d" : memref<16x16xf32, #hivm.address_space<cc>>
      %w = tile.alloc "w" slots 2 : i64 : memref<16x16xf32, #hivm.address_space<gm>>
      %g = tile.alloc "g" slots 2 : i64 : memref<16x16xf32, #hivm.address_space<gm>>
      %v = tile.alloc "v" slots 2 : i64 : memref<16x16xf32, #hivm.address_space<gm>>
      %x = tile.alloc "x" slots 2 : i64 : memref<16x16xf32, #hivm.address_space<ub>>
      %y = tile.alloc "y" slots 2 : i64 : memref<16x16xf32, #hivm.address_space<ub>>
      %a = tile.alloc "a" slots 2 : i64 : memref<16x16xf32, #hivm.address_space<cbuf>>
      %k = tile.alloc "k" slots 2 : i64 : memref<16x16xf32, #hivm.address_space<cbuf>>
      %vv = tile.alloc "vv" slots 2 : i64 : memref<16x16xf32, #hivm.address_space<cbuf>>
      %c16 = arith.constant 16 : index
      %row = arith.muli %i, %c16 : index
      %0 = tile.region %A[%row, 0] [16, 16] keep [0, 1] : memref<128x16xf32, #hivm.address_space<gm>> to memref<16x16xf32, strided<[16, 1], offset: ?>, #hivm.address_space<gm>>
      tile.copy %0 to %k : memref<16x16xf32, strided<[16, 1], offset: ?>, #hivm.address_space<gm>> to memref<16x16xf32, #hivm.address_space<cbuf>>
      tile.gemm %q, %k into %c init %true : memref<16x16xf32, #hivm.address_space<cbuf>>, memref<16x16xf32, #hivm.address_space<cbuf>> into memref<16x16xf32, #hivm.address_space<cc>>
      tile.copy %c to %w : memref<16x16xf32, #hivm.address_space<cc>> to memref<16x16xf32, #hivm.address_space<gm>>
      tile.copy %w to %x : memref<16x16xf32, #hivm.address_space<gm>> to memref<16x16xf32, #hivm.address_space<ub>>
      tile.elementwise "exp" ins(%x : memref<16x16xf32, #hivm.address_space<ub>>) outs(%x : memref<16x16xf32, #hivm.address_space<ub>>)
      tile.copy %x to %g : memref<16x16xf32, #hivm.address_space<ub>> to memref<16x16xf32, #hivm.address_space<gm>>
      tile.copy %0 to %vv : memref<16x16xf32, strided<[16, 1], offset: ?>, #hivm.address_space<gm>> to memref<16x16xf32, #hivm.address_space<cbuf>>
      tile.copy %g to %a : memref<16x16xf32, #hivm.address_space<gm>> to memref<16x16xf32, #hivm.address_space<cbuf>>
      tile.gemm %a, %vv into %d init %true : memref<16x16xf32, #hivm.address_space<cbuf>>, memref<16x16xf32, #hivm.address_space<cbuf>> into memref<16x16xf32, #hivm.address_space<cc>>
      tile.copy %d to %v : memref<16x16xf32, #hivm.address_space<cc>> to memref<16x16xf32, #hivm.address_space<gm>>
      tile.copy %v to %y : memref<16x16xf32, #hivm.address_space<gm>> to memref<16x16xf32, #hivm.address_space<ub>>
      tile.elementwise "add" ins(%y, %sum : memref<16x16xf32, #hivm.address_space<ub>>, memref<16x16xf32, #hivm.address_space<ub>>) outs(%sum : memref<16x16xf32, #hivm.address_space<ub>>)
    } {tile.num_stages = 2 : i64}
  }
  return
}
