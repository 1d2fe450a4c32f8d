// RUN: tilelang-npu opt %s -p assign-cores,schedule-statements | filecheck %s
// Operations of stage 1 run one iteration later, so there is a first loop with only stage 0, a loop with both stages, and an
// end. A value that passes between the stages has a slot for each iteration in between; other buffers have one.
// CHECK:      tile.alloc "x" : memref<2x64x64xf32
// CHECK:      scf.for
// CHECK:        tile.copy
// CHECK-NOT:    tile.elementwise
// CHECK:      scf.for
// CHECK:        tile.alloc "y" : memref<64x64xf32
// CHECK:        tile.copy
// CHECK:        tile.elementwise "exp"
// CHECK:        tile.copy
// CHECK:      scf.for
// CHECK:        tile.elementwise "exp"
// CHECK:        tile.copy
// CHECK-NOT:    tile.copy
// CHECK:      return
func.func @k(%X: memref<256x64xf32, #hivm.address_space<gm>>, %Y: memref<256x64xf32, #hivm.address_space<gm>>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c64 = arith.constant 64 : index
  %true = arith.constant true
  tile.launch(%c1) sub_blocks 1 : i64 {
  ^bb0(%block: index):
    scf.for %i = %c0 to %c4 step %c1 {
      %x = tile.alloc "x" : memref<64x64xf32, #hivm.address_space<ub>>
      %y = tile.alloc "y" : memref<64x64xf32, #hivm.address_space<ub>>
      %row = arith.muli %i, %c64 : index loc("tile.statement 1 0"("k.py":1:1))
      %from = tile.region %X[%row, 0] [64, 64] keep [0, 1] : memref<256x64xf32, #hivm.address_space<gm>> to memref<64x64xf32, strided<[64, 1], offset: ?>, #hivm.address_space<gm>> loc("tile.statement 1 0"("k.py":1:1))
      tile.copy %from to %x : memref<64x64xf32, strided<[64, 1], offset: ?>, #hivm.address_space<gm>> to memref<64x64xf32, #hivm.address_space<ub>> loc("tile.statement 1 0"("k.py":1:1))
      tile.elementwise "exp" ins(%x : memref<64x64xf32, #hivm.address_space<ub>>) outs(%y : memref<64x64xf32, #hivm.address_space<ub>>) loc("tile.statement 1 1"("k.py":2:1))
      %to = tile.region %Y[%row, 0] [64, 64] keep [0, 1] : memref<256x64xf32, #hivm.address_space<gm>> to memref<64x64xf32, strided<[64, 1], offset: ?>, #hivm.address_space<gm>> loc("tile.statement 1 2"("k.py":3:1))
      tile.copy %y to %to : memref<64x64xf32, #hivm.address_space<ub>> to memref<64x64xf32, strided<[64, 1], offset: ?>, #hivm.address_space<gm>> loc("tile.statement 1 2"("k.py":3:1))
    } {tile.order = array<i64: 0, 1, 2>, tile.schedule = 1 : i64, tile.stage = array<i64: 0, 1, 1>}
  }
  return
}
