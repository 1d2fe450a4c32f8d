// RUN: tilelang-npu opt %s -p reuse-results | filecheck %s
// The second conversion of x is removed, and so is the one in the loop, which writes another buffer. The square is computed again
// after y has changed.
// CHECK:      tile.copy %x to %[[A:.*]] round "rint"
// CHECK:      tile.elementwise "mul" ins(%[[A]], %[[A]] {{.*}}) outs(%y
// CHECK-NOT:  tile.copy %x
// CHECK:      tile.elementwise "add" ins(%[[A]], %y {{.*}}) outs(%z
// CHECK:      tile.elementwise "mul" ins(%y, %y {{.*}}) outs(%[[S:[^ ]*]]
// CHECK:      tile.elementwise "add" ins(%[[S]], %z {{.*}}) outs(%y
// CHECK:      tile.elementwise "mul" ins(%y, %y {{.*}}) outs(%[[R:[^ ]*]]
// CHECK:      tile.elementwise "add" ins(%[[R]], %z {{.*}}) outs(%z
// CHECK:      scf.for
// CHECK-NOT:  tile.copy %x
// CHECK:      tile.elementwise "add" ins(%[[A]], %z {{.*}}) outs(%z
func.func @k() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  tile.launch(%c1) sub_blocks 1 : i64 {
  ^bb0(%block: index):
    %x = tile.alloc "x" : memref<8x64xf16, #hivm.address_space<ub>>
    %y = tile.alloc "y" : memref<8x64xf32, #hivm.address_space<ub>>
    %z = tile.alloc "z" : memref<8x64xf32, #hivm.address_space<ub>>
    %a = tile.alloc "T.Parallel" : memref<8x64xf32, #hivm.address_space<ub>>
    tile.copy %x to %a round "rint" : memref<8x64xf16, #hivm.address_space<ub>> to memref<8x64xf32, #hivm.address_space<ub>>
    tile.elementwise "mul" ins(%a, %a : memref<8x64xf32, #hivm.address_space<ub>>, memref<8x64xf32, #hivm.address_space<ub>>) outs(%y : memref<8x64xf32, #hivm.address_space<ub>>)
    %b = tile.alloc "T.Parallel" : memref<8x64xf32, #hivm.address_space<ub>>
    tile.copy %x to %b round "rint" : memref<8x64xf16, #hivm.address_space<ub>> to memref<8x64xf32, #hivm.address_space<ub>>
    tile.elementwise "add" ins(%b, %y : memref<8x64xf32, #hivm.address_space<ub>>, memref<8x64xf32, #hivm.address_space<ub>>) outs(%z : memref<8x64xf32, #hivm.address_space<ub>>)
    %s = tile.alloc "T.Parallel" : memref<8x64xf32, #hivm.address_space<ub>>
    tile.elementwise "mul" ins(%y, %y : memref<8x64xf32, #hivm.address_space<ub>>, memref<8x64xf32, #hivm.address_space<ub>>) outs(%s : memref<8x64xf32, #hivm.address_space<ub>>)
    tile.elementwise "add" ins(%s, %z : memref<8x64xf32, #hivm.address_space<ub>>, memref<8x64xf32, #hivm.address_space<ub>>) outs(%y : memref<8x64xf32, #hivm.address_space<ub>>)
    %r = tile.alloc "T.Parallel" : memref<8x64xf32, #hivm.address_space<ub>>
    tile.elementwise "mul" ins(%y, %y : memref<8x64xf32, #hivm.address_space<ub>>, memref<8x64xf32, #hivm.address_space<ub>>) outs(%r : memref<8x64xf32, #hivm.address_space<ub>>)
    tile.elementwise "add" ins(%r, %z : memref<8x64xf32, #hivm.address_space<ub>>, memref<8x64xf32, #hivm.address_space<ub>>) outs(%z : memref<8x64xf32, #hivm.address_space<ub>>)
    scf.for %i = %c0 to %c8 step %c1 {
      %c = tile.alloc "T.Parallel" : memref<8x64xf32, #hivm.address_space<ub>>
      tile.copy %x to %c round "rint" : memref<8x64xf16, #hivm.address_space<ub>> to memref<8x64xf32, #hivm.address_space<ub>>
      tile.elementwise "add" ins(%c, %z : memref<8x64xf32, #hivm.address_space<ub>>, memref<8x64xf32, #hivm.address_space<ub>>) outs(%z : memref<8x64xf32, #hivm.address_space<ub>>)
    }
  }
  return
}
