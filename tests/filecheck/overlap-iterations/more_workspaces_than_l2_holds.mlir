// RUN: tilelang-npu opt %s -p assign-cores,overlap-iterations | filecheck %s
// 1024 blocks each pass three tiles of 16 KB: with four overlapped iterations these would take 224 MB, but L2 has 192 MB.
// With three they take 176 MB, as with num_stages=3: the loads of an iteration have no more slots either. The tensor is
// small.
// CHECK:      tile.alloc "g" : memref<4x64x64xf32, #hivm.address_space<gm>>
// CHECK:      scf.for
// CHECK-DAG:    tile.alloc "w" slots 4 : i64
// CHECK-DAG:    tile.alloc "v" slots 3 : i64
// CHECK-DAG:    tile.alloc "k" slots 3 : i64
func.func @k(%A: memref<64x64xf32, #hivm.address_space<gm>>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c1024 = arith.constant 1024 : index
  %true = arith.constant true
  tile.launch(%c1024) sub_blocks 1 : i64 {
  ^bb0(%block: index):
    %q = tile.alloc "q" : memref<64x64xf32, #hivm.address_space<cbuf>>
    %sum = tile.alloc "sum" : memref<64x64xf32, #hivm.address_space<ub>>
    scf.for %i = %c0 to %c8 step %c1 {
      %c = tile.alloc "c" : memref<64x64xf32, #hivm.address_space<cc>>
      %d = tile.alloc "d" : memref<64x64xf32, #hivm.address_space<cc>>
      %w = tile.alloc "w" slots 4 : i64 : memref<64x64xf32, #hivm.address_space<gm>>
      %g = tile.alloc "g" slots 4 : i64 : memref<64x64xf32, #hivm.address_space<gm>>
      %v = tile.alloc "v" slots 4 : i64 : memref<64x64xf32, #hivm.address_space<gm>>
      %x = tile.alloc "x" : memref<64x64xf32, #hivm.address_space<ub>>
      %y = tile.alloc "y" : memref<64x64xf32, #hivm.address_space<ub>>
      %a = tile.alloc "a" : memref<64x64xf32, #hivm.address_space<cbuf>>
      %k = tile.alloc "k" slots 4 : i64 : memref<64x64xf32, #hivm.address_space<cbuf>>
      tile.copy %A to %k : memref<64x64xf32, #hivm.address_space<gm>> to memref<64x64xf32, #hivm.address_space<cbuf>>
      tile.gemm %q, %k into %c init %true : memref<64x64xf32, #hivm.address_space<cbuf>>, memref<64x64xf32, #hivm.address_space<cbuf>> into memref<64x64xf32, #hivm.address_space<cc>>
      tile.copy %c to %w : memref<64x64xf32, #hivm.address_space<cc>> to memref<64x64xf32, #hivm.address_space<gm>>
      tile.copy %w to %x : memref<64x64xf32, #hivm.address_space<gm>> to memref<64x64xf32, #hivm.address_space<ub>>
      tile.elementwise "exp" ins(%x : memref<64x64xf32, #hivm.address_space<ub>>) outs(%x : memref<64x64xf32, #hivm.address_space<ub>>)
      tile.copy %x to %g : memref<64x64xf32, #hivm.address_space<ub>> to memref<64x64xf32, #hivm.address_space<gm>>
      tile.copy %g to %a : memref<64x64xf32, #hivm.address_space<gm>> to memref<64x64xf32, #hivm.address_space<cbuf>>
      tile.gemm %a, %q into %d init %true : memref<64x64xf32, #hivm.address_space<cbuf>>, memref<64x64xf32, #hivm.address_space<cbuf>> into memref<64x64xf32, #hivm.address_space<cc>>
      tile.copy %d to %v : memref<64x64xf32, #hivm.address_space<cc>> to memref<64x64xf32, #hivm.address_space<gm>>
      tile.copy %v to %y : memref<64x64xf32, #hivm.address_space<gm>> to memref<64x64xf32, #hivm.address_space<ub>>
      tile.elementwise "add" ins(%y, %sum : memref<64x64xf32, #hivm.address_space<ub>>, memref<64x64xf32, #hivm.address_space<ub>>) outs(%sum : memref<64x64xf32, #hivm.address_space<ub>>)
    } {tile.num_stages = 4 : i64}
  }
  return
}
