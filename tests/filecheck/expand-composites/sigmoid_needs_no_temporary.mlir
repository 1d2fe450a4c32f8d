// RUN: tilelang-npu opt %s -p expand-composites | filecheck %s
// 1 / (1 + exp(0 - x)), step by step in the destination.
// CHECK-NOT:  tile.alloc
// CHECK:      tile.elementwise "sub" ins(%{{.*}}, %x
// CHECK:      tile.elementwise "exp" ins(%y
// CHECK:      tile.elementwise "add" ins(%y
// CHECK:      tile.elementwise "div" ins(%{{.*}}, %y
func.func @k(%x: memref<8xf32, #hivm.address_space<ub>>, %y: memref<8xf32, #hivm.address_space<ub>>) {
  tile.elementwise "sigmoid" ins(%x : memref<8xf32, #hivm.address_space<ub>>) outs(%y : memref<8xf32, #hivm.address_space<ub>>)
  return
}
