// RUN: tilelang-npu opt %s -p legalise-types | filecheck %s
// Rows of run-time number: the wider temporary is as large as their buffer, and is sliced to the same size.
// CHECK:      %[[T:.*]] = tile.alloc "wide" {tile.scratch} : memref<8x64xf32
// CHECK-NEXT: %[[C:.*]] = tile.region %[[T]][0, 0] [%n, 64]
// CHECK-NEXT: tile.copy %a to %[[C]]
// CHECK:      tile.elementwise "exp" ins(%[[C]]
func.func @k(%n: index) {
  %x = tile.alloc "x" : memref<8x64xbf16, #hivm.address_space<ub>>
  %y = tile.alloc "y" : memref<8x64xbf16, #hivm.address_space<ub>>
  %a = tile.region %x[0, 0] [%n, 64] keep [0, 1] : memref<8x64xbf16, #hivm.address_space<ub>> to memref<?x64xbf16, strided<[64, 1]>, #hivm.address_space<ub>>
  %b = tile.region %y[0, 0] [%n, 64] keep [0, 1] : memref<8x64xbf16, #hivm.address_space<ub>> to memref<?x64xbf16, strided<[64, 1]>, #hivm.address_space<ub>>
  tile.elementwise "exp" ins(%a : memref<?x64xbf16, strided<[64, 1]>, #hivm.address_space<ub>>) outs(%b : memref<?x64xbf16, strided<[64, 1]>, #hivm.address_space<ub>>)
  return
}
