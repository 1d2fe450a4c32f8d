// RUN: tilelang-npu opt %s -p assign-cores,pipeline-loops | filecheck %s
// The tensors of 256 MiB do not fit in L2, and each tile is read soon after it is loaded: 48 cores wait for HBM with slots and without.
// CHECK-LABEL: func.func @beyond_l2
// CHECK-NOT:   num_stages
// A tensor that fits in L2 is loaded faster.
// CHECK-LABEL: func.func @in_l2
// CHECK:       tile.num_stages = 2 : i64
// A tensor whose size is known only at run time may fit in L2 too.
// CHECK-LABEL: func.func @of_any_size
// CHECK:       tile.num_stages = 2 : i64
func.func @beyond_l2(%X: memref<65536x512xf32, #hivm.address_space<gm>>, %Y: memref<65536x512xf32, #hivm.address_space<gm>>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c24 = arith.constant 24 : index
  tile.launch(%c24) sub_blocks 2 : i64 spread {
  ^bb0(%block: index):
    %x = tile.alloc "x" : memref<16x512xf32, #hivm.address_space<ub>>
    %y = tile.alloc "y" : memref<16x512xf32, #hivm.address_space<ub>>
    scf.for %i = %c0 to %c8 step %c1 {
      %xi = tile.region %X[%i, 0] [16, 512] keep [0, 1] : memref<65536x512xf32, #hivm.address_space<gm>> to memref<16x512xf32, strided<[512, 1], offset: ?>, #hivm.address_space<gm>>
      tile.copy %xi to %x : memref<16x512xf32, strided<[512, 1], offset: ?>, #hivm.address_space<gm>> to memref<16x512xf32, #hivm.address_space<ub>>
      tile.elementwise "abs" ins(%x : memref<16x512xf32, #hivm.address_space<ub>>) outs(%y : memref<16x512xf32, #hivm.address_space<ub>>)
      %yi = tile.region %Y[%i, 0] [16, 512] keep [0, 1] : memref<65536x512xf32, #hivm.address_space<gm>> to memref<16x512xf32, strided<[512, 1], offset: ?>, #hivm.address_space<gm>>
      tile.copy %y to %yi : memref<16x512xf32, #hivm.address_space<ub>> to memref<16x512xf32, strided<[512, 1], offset: ?>, #hivm.address_space<gm>>
    }
  }
  return
}
func.func @in_l2(%X: memref<12288x512xf32, #hivm.address_space<gm>>, %Y: memref<12288x512xf32, #hivm.address_space<gm>>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c24 = arith.constant 24 : index
  tile.launch(%c24) sub_blocks 2 : i64 spread {
  ^bb0(%block: index):
    %x = tile.alloc "x" : memref<16x512xf32, #hivm.address_space<ub>>
    %y = tile.alloc "y" : memref<16x512xf32, #hivm.address_space<ub>>
    scf.for %i = %c0 to %c8 step %c1 {
      %xi = tile.region %X[%i, 0] [16, 512] keep [0, 1] : memref<12288x512xf32, #hivm.address_space<gm>> to memref<16x512xf32, strided<[512, 1], offset: ?>, #hivm.address_space<gm>>
      tile.copy %xi to %x : memref<16x512xf32, strided<[512, 1], offset: ?>, #hivm.address_space<gm>> to memref<16x512xf32, #hivm.address_space<ub>>
      tile.elementwise "abs" ins(%x : memref<16x512xf32, #hivm.address_space<ub>>) outs(%y : memref<16x512xf32, #hivm.address_space<ub>>)
      %yi = tile.region %Y[%i, 0] [16, 512] keep [0, 1] : memref<12288x512xf32, #hivm.address_space<gm>> to memref<16x512xf32, strided<[512, 1], offset: ?>, #hivm.address_space<gm>>
      tile.copy %y to %yi : memref<16x512xf32, #hivm.address_space<ub>> to memref<16x512xf32, strided<[512, 1], offset: ?>, #hivm.address_space<gm>>
    }
  }
  return
}
func.func @of_any_size(%A: memref<?xf32, #hivm.address_space<gm>>, %B: memref<?xf32, #hivm.address_space<gm>>, %n: index) {
  %X = tile.tensor %A [%n, 512] : memref<?xf32, #hivm.address_space<gm>> to memref<?x512xf32, #hivm.address_space<gm>>
  %Y = tile.tensor %B [%n, 512] : memref<?xf32, #hivm.address_space<gm>> to memref<?x512xf32, #hivm.address_space<gm>>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c24 = arith.constant 24 : index
  tile.launch(%c24) sub_blocks 2 : i64 spread {
  ^bb0(%block: index):
    %x = tile.alloc "x" : memref<16x512xf32, #hivm.address_space<ub>>
    %y = tile.alloc "y" : memref<16x512xf32, #hivm.address_space<ub>>
    scf.for %i = %c0 to %c8 step %c1 {
      %xi = tile.region %X[%i, 0] [16, 512] keep [0, 1] : memref<?x512xf32, #hivm.address_space<gm>> to memref<16x512xf32, strided<[512, 1], offset: ?>, #hivm.address_space<gm>>
      tile.copy %xi to %x : memref<16x512xf32, strided<[512, 1], offset: ?>, #hivm.address_space<gm>> to memref<16x512xf32, #hivm.address_space<ub>>
      tile.elementwise "abs" ins(%x : memref<16x512xf32, #hivm.address_space<ub>>) outs(%y : memref<16x512xf32, #hivm.address_space<ub>>)
      %yi = tile.region %Y[%i, 0] [16, 512] keep [0, 1] : memref<?x512xf32, #hivm.address_space<gm>> to memref<16x512xf32, strided<[512, 1], offset: ?>, #hivm.address_space<gm>>
      tile.copy %y to %yi : memref<16x512xf32, #hivm.address_space<ub>> to memref<16x512xf32, strided<[512, 1], offset: ?>, #hivm.address_space<gm>>
    }
  }
  return
}
