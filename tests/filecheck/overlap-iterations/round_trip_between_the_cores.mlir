// RUN: tilelang-npu opt %s -p assign-cores,overlap-iterations | filecheck %s
// Cube, Vector, Cube, Vector: the second half runs two iterations later. Each value that it gets from the first half, in GM
// and in UB, has a slot for each iteration in between; values of only one half are not changed. The last product is not
// delayed further.
// CHECK:      %[[G:.*]] = tile.alloc "g" : memref<3x16x16xf32, #hivm.address_space<gm>>
// CHECK:      scf.for %i = %c0 to %{{.*}} step %c1 {
// CHECK:        %[[FIRST:.*]] = arith.cmpi slt, %i, %c8
// CHECK-NEXT:   scf.if %[[FIRST]] {
// CHECK:          tile.copy %c to %w
// CHECK:        scf.if
// CHECK:          %[[TURN:.*]] = arith.remui
// CHECK:          tile.region %g[%[[TURN]], 0, 0] [1, 16, 16] keep [1, 2]
// CHECK:          tile.copy %w to %x
// CHECK:        arith.cmpi sge, %i
// CHECK-NEXT:   scf.if
// CHECK:          tile.copy %{{.*}} to %a
// CHECK:          tile.copy %d to %v
// CHECK:        scf.if
// CHECK:          tile.elementwise "add" ins(%y, %sum
// CHECK-NOT:  tile.num_stages
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
      %c16 = arith.constant 16 : index
      %row = arith.muli %i, %c16 : index
      %0 = tile.region %A[%row, 0] [16, 16] keep [0, 1] : memref<128x16xf32, #hivm.address_space<gm>> to memref<16x16xf32, strided<[16, 1], offset: ?>, #hivm.address_space<gm>>
      tile.copy %0 to %k : memref<16x16xf32, strided<[16, 1], offset: ?>, #hivm.address_space<gm>> to memref<16x16xf32, #hivm.address_space<cbuf>>
      tile.gemm %q, %k into %c init %true : memref<16x16xf32, #hivm.address_space<cbuf>>, memref<16x16xf32, #hivm.address_space<cbuf>> into memref<16x16xf32, #hivm.address_space<cc>>
      tile.copy %c to %w : memref<16x16xf32, #hivm.address_space<cc>> to memref<16x16xf32, #hivm.address_space<gm>>
      tile.copy %w to %x : memref<16x16xf32, #hivm.address_space<gm>> to memref<16x16xf32, #hivm.address_space<ub>>
      tile.elementwise "exp" ins(%x : memref<16x16xf32, #hivm.address_space<ub>>) outs(%x : memref<16x16xf32, #hivm.address_space<ub>>)
      tile.copy %x to %g : memref<16x16xf32, #hivm.address_space<ub>> to memref<16x16xf32, #hivm.address_space<gm>>
      tile.copy %g to %a : memref<16x16xf32, #hivm.address_space<gm>> to memref<16x16xf32, #hivm.address_space<cbuf>>
      tile.gemm %a, %q into %d init %true : memref<16x16xf32, #hivm.address_space<cbuf>>, memref<16x16xf32, #hivm.address_space<cbuf>> into memref<16x16xf32, #hivm.address_space<cc>>
      tile.copy %d to %v : memref<16x16xf32, #hivm.address_space<cc>> to memref<16x16xf32, #hivm.address_space<gm>>
      tile.copy %v to %y : memref<16x16xf32, #hivm.address_space<gm>> to memref<16x16xf32, #hivm.address_space<ub>>
      tile.elementwise "add" ins(%y, %sum : memref<16x16xf32, #hivm.address_space<ub>>, memref<16x16xf32, #hivm.address_space<ub>>) outs(%sum : memref<16x16xf32, #hivm.address_space<ub>>)
    } {tile.num_stages = 2 : i64}
  }
  return
}
