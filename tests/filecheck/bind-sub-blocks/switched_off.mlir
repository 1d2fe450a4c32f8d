// RUN: tilelang-npu opt %s -p 'assign-cores,bind-sub-blocks{enabled=false mixed=false}' | filecheck %s
// Switched off: the first of the two Vector cores processes whole tiles, and the second is idle.
// CHECK:      %[[FIRST:.*]] = arith.cmpi eq, %vid
// CHECK-NEXT: scf.if %[[FIRST]]
// CHECK:        tile.alloc "x" : memref<16x16xf32
func.func @k(%X: memref<16x16xf32, #hivm.address_space<gm>>, %Y: memref<16x16xf32, #hivm.address_space<gm>>) {
  %c1 = arith.constant 1 : index
  tile.launch(%c1) sub_blocks 2 : i64 spread {
  ^bb0(%cid: index):
    %x = tile.alloc "x" : memref<16x16xf32, #hivm.address_space<ub>>
    tile.copy %X to %x : memref<16x16xf32, #hivm.address_space<gm>> to memref<16x16xf32, #hivm.address_space<ub>>
    tile.elementwise "exp" ins(%x : memref<16x16xf32, #hivm.address_space<ub>>) outs(%x : memref<16x16xf32, #hivm.address_space<ub>>)
    tile.copy %x to %Y : memref<16x16xf32, #hivm.address_space<ub>> to memref<16x16xf32, #hivm.address_space<gm>>
  }
  return
}
