// RUN: tilelang-npu opt %s -p assign-cores,schedule-statements | filecheck %s
// A branch reads half of a value that passes between the stages: it reads half of the slot, at any offset.
// CHECK:      tile.alloc "x" : memref<2x64x64xf32
// CHECK:      scf.for
// CHECK:      scf.for
// CHECK:        [[SLOT:%[0-9]+]] = tile.region %x[%{{[0-9]+}}, 0, 0] [1, 64, 64] keep [1, 2]
// CHECK:        scf.if %true {
// CHECK-NEXT:     tile.region %{{[0-9]+}}[32, 0] [32, 64] keep [0, 1] : {{.*}} to memref<32x64xf32, strided<[64, 1], offset: ?>
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
      scf.if %true {
        %half = tile.region %x[32, 0] [32, 64] keep [0, 1] : memref<64x64xf32, #hivm.address_space<ub>> to memref<32x64xf32, strided<[64, 1], offset: 2048>, #hivm.address_space<ub>> loc("tile.statement 1 1"("k.py":2:1))
        %other = tile.region %y[32, 0] [32, 64] keep [0, 1] : memref<64x64xf32, #hivm.address_space<ub>> to memref<32x64xf32, strided<[64, 1], offset: 2048>, #hivm.address_space<ub>> loc("tile.statement 1 1"("k.py":2:1))
        tile.elementwise "exp" ins(%half : memref<32x64xf32, strided<[64, 1], offset: 2048>, #hivm.address_space<ub>>) outs(%other : memref<32x64xf32, strided<[64, 1], offset: 2048>, #hivm.address_space<ub>>) loc("tile.statement 1 1"("k.py":2:1))
      } loc("tile.statement 1 1"("k.py":2:1))
      %part = tile.region %y[32, 0] [32, 64] keep [0, 1] : memref<64x64xf32, #hivm.address_space<ub>> to memref<32x64xf32, strided<[64, 1], offset: 2048>, #hivm.address_space<ub>> loc("tile.statement 1 2"("k.py":3:1))
      %to = tile.region %Y[%row, 0] [32, 64] keep [0, 1] : memref<256x64xf32, #hivm.address_space<gm>> to memref<32x64xf32, strided<[64, 1], offset: ?>, #hivm.address_space<gm>> loc("tile.statement 1 2"("k.py":3:1))
      tile.copy %part to %to : memref<32x64xf32, strided<[64, 1], offset: 2048>, #hivm.address_space<ub>> to memref<32x64xf32, strided<[64, 1], offset: ?>, #hivm.address_space<gm>> loc("tile.statement 1 2"("k.py":3:1))
    } {tile.order = array<i64: 0, 1, 2>, tile.schedule = 1 : i64, tile.stage = array<i64: 0, 1, 1>}
  }
  return
}
