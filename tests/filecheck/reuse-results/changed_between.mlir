// RUN: tilelang-npu opt %s -p reuse-results | filecheck %s
// Nothing is removed: the loop changes x after the conversion, the first result is overwritten before the last read of the
// second one, and the author's buffer stays.
// CHECK-COUNT-2: tile.elementwise "exp" ins(%y
// CHECK:         tile.elementwise "abs" ins(%y {{.*}}) outs(%w
// CHECK:         scf.for
// CHECK:         tile.elementwise "exp" ins(%x
func.func @k() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  tile.launch(%c1) sub_blocks 1 : i64 {
  ^bb0(%block: index):
    %x = tile.alloc "x" : memref<8x64xf32, #hivm.address_space<ub>>
    %y = tile.alloc "y" : memref<8x64xf32, #hivm.address_space<ub>>
    %v = tile.alloc "v" : memref<8x64xf32, #hivm.address_space<ub>>
    %w = tile.alloc "w" : memref<8x64xf32, #hivm.address_space<ub>>
    tile.elementwise "exp" ins(%y : memref<8x64xf32, #hivm.address_space<ub>>) outs(%v : memref<8x64xf32, #hivm.address_space<ub>>)
    %b = tile.alloc "T.Parallel" : memref<8x64xf32, #hivm.address_space<ub>>
    tile.elementwise "exp" ins(%y : memref<8x64xf32, #hivm.address_space<ub>>) outs(%b : memref<8x64xf32, #hivm.address_space<ub>>)
    tile.elementwise "abs" ins(%y : memref<8x64xf32, #hivm.address_space<ub>>) outs(%v : memref<8x64xf32, #hivm.address_space<ub>>)
    tile.elementwise "abs" ins(%y : memref<8x64xf32, #hivm.address_space<ub>>) outs(%w : memref<8x64xf32, #hivm.address_space<ub>>)
    tile.elementwise "add" ins(%b, %v : memref<8x64xf32, #hivm.address_space<ub>>, memref<8x64xf32, #hivm.address_space<ub>>) outs(%w : memref<8x64xf32, #hivm.address_space<ub>>)
    %d = tile.alloc "T.Parallel" : memref<8x64xf32, #hivm.address_space<ub>>
    tile.elementwise "exp" ins(%x : memref<8x64xf32, #hivm.address_space<ub>>) outs(%d : memref<8x64xf32, #hivm.address_space<ub>>)
    scf.for %i = %c0 to %c8 step %c1 {
      %e = tile.alloc "T.Parallel" : memref<8x64xf32, #hivm.address_space<ub>>
      tile.elementwise "exp" ins(%x : memref<8x64xf32, #hivm.address_space<ub>>) outs(%e : memref<8x64xf32, #hivm.address_space<ub>>)
      tile.elementwise "add" ins(%e, %d : memref<8x64xf32, #hivm.address_space<ub>>, memref<8x64xf32, #hivm.address_space<ub>>) outs(%x : memref<8x64xf32, #hivm.address_space<ub>>)
    }
  }
  return
}
