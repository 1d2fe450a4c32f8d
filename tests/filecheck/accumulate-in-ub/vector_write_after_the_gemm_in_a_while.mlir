// RUN: tilelang-npu opt %s -p accumulate-in-ub | filecheck %s
// The vector work follows the gemm, but precedes the gemm of the next iteration: the gemm gets a separate buffer.
// CHECK:      do {
// CHECK:        %[[P:.*]] = tile.alloc "product"
// CHECK:        tile.gemm %a, %b into %[[P]]
// CHECK-NEXT:   tile.elementwise "add" ins(%c, %[[P]]
// CHECK-NEXT:   tile.elementwise "mul"
func.func @k() {
  %half = arith.constant 0.5 : f32
  %no = arith.constant false
  %c0 = arith.constant 0 : index
  %a = tile.alloc "a" : memref<32x16xf16, #tile.scope<shared>>
  %b = tile.alloc "b" : memref<16x32xf16, #tile.scope<shared>>
  %c = tile.alloc "c" : memref<32x32xf32, #tile.scope<fragment>>
  %go = tile.alloc "go" : memref<1xi1, #tile.scope<local>>
  scf.while () : () -> () {
    %more = memref.load %go[%c0] : memref<1xi1, #tile.scope<local>>
    scf.condition(%more)
  } do {
    tile.gemm %a, %b into %c init %no : memref<32x16xf16, #tile.scope<shared>>, memref<16x32xf16, #tile.scope<shared>> into memref<32x32xf32, #tile.scope<fragment>>
    tile.elementwise "mul" ins(%c, %half : memref<32x32xf32, #tile.scope<fragment>>, f32) outs(%c : memref<32x32xf32, #tile.scope<fragment>>)
    scf.yield
  }
  return
}
