// RUN: tilelang-npu opt %s -p assign-cores,sink-buffers | filecheck %s
// The running sum is read before it is written: it is loop-carried and stays outside, with one slot.
// CHECK:      tile.alloc "sum" : memref
// CHECK:      scf.for
// CHECK-NEXT: tile.alloc "x" slots 2
func.func @k(%X: memref<8x64xf32, #hivm.address_space<gm>>) attributes {hacc.entry} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %x = tile.alloc "x" : memref<8x64xf32, #hivm.address_space<ub>>
  %sum = tile.alloc "sum" : memref<8x64xf32, #hivm.address_space<ub>>
  scf.for %i = %c0 to %c4 step %c1 {
    tile.copy %X to %x : memref<8x64xf32, #hivm.address_space<gm>> to memref<8x64xf32, #hivm.address_space<ub>>
    tile.elementwise "add" ins(%sum, %x : memref<8x64xf32, #hivm.address_space<ub>>, memref<8x64xf32, #hivm.address_space<ub>>) outs(%sum : memref<8x64xf32, #hivm.address_space<ub>>)
  } {tile.num_stages = 2 : i64}
  return
}
