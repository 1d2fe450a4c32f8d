// RUN: tilelang-npu opt %s -p hoist-loads | filecheck %s
// The mask depends on the induction variable, so the load stays.
// CHECK:      scf.for
// CHECK:        scf.if
// CHECK:          tile.call "arange"
// CHECK:          tile.elementwise "compare"
// CHECK:          tile.elementwise "select"
func.func @k(%n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  tile.launch(%c1) sub_blocks 1 : i64 {
  ^bb0(%block: index):
    %x = tile.alloc "x" : memref<8x64xf32, #hivm.address_space<ub>>
    scf.for %i = %c0 to %n step %c1 {
      %last = arith.cmpi eq, %i, %c1 : index
      scf.if %last {
        %mask = tile.alloc "T.Parallel" : memref<8x64xi1, #hivm.address_space<ub>>
        %at = tile.alloc "T.Parallel" : memref<8x64xf32, #hivm.address_space<ub>>
        %back = arith.constant -1 : index
        %first = arith.muli %i, %back : index
        tile.call "arange" ins(%first, %back, %c1 : index, index, index) outs(%at : memref<8x64xf32, #hivm.address_space<ub>>)
        %zero = arith.constant 0.0 : f32
        tile.elementwise "compare" ins(%at, %zero : memref<8x64xf32, #hivm.address_space<ub>>, f32) outs(%mask : memref<8x64xi1, #hivm.address_space<ub>>) {compare_mode = "le"}
        %low = arith.constant -1.0 : f32
        tile.elementwise "select" ins(%mask, %x, %low : memref<8x64xi1, #hivm.address_space<ub>>, memref<8x64xf32, #hivm.address_space<ub>>, f32) outs(%x : memref<8x64xf32, #hivm.address_space<ub>>)
      }
    }
  }
  return
}
