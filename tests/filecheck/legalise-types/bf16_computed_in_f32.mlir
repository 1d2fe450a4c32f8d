// RUN: tilelang-npu opt %s -p legalise-types | filecheck %s
// Both inputs are widened to f32, and the sum is rounded once.
// CHECK-DAG:  tile.copy %x to %[[A:[a-z_0-9]+]] :
// CHECK-DAG:  tile.copy %y to %[[B:[a-z_0-9]+]] :
// CHECK:      tile.elementwise "add"
// CHECK:      tile.copy %{{.*}} to %y
func.func @k(%x: memref<8xbf16, #hivm.address_space<ub>>, %y: memref<8xbf16, #hivm.address_space<ub>>) {
  tile.elementwise "add" ins(%x, %y : memref<8xbf16, #hivm.address_space<ub>>, memref<8xbf16, #hivm.address_space<ub>>) outs(%y : memref<8xbf16, #hivm.address_space<ub>>)
  return
}
