// RUN: tilelang-npu opt %s -p infer-scopes | filecheck %s
// Operands of vector work are in UB, whichever allocation function the user called; so is a buffer that is only copied.
// CHECK-DAG: tile.alloc "x" : memref<8x64xf32, #hivm.address_space<ub>>
// CHECK-DAG: tile.alloc "y" : memref<8x64xf32, #hivm.address_space<ub>>
// CHECK-DAG: tile.alloc "z" : memref<8x64xf32, #hivm.address_space<ub>>
func.func @k(%X: memref<8x64xf32, #hivm.address_space<gm>>) {
  %x = tile.alloc "x" : memref<8x64xf32, #tile.scope<shared>>
  %y = tile.alloc "y" : memref<8x64xf32, #tile.scope<fragment>>
  %z = tile.alloc "z" : memref<8x64xf32, #tile.scope<shared>>
  tile.elementwise "exp" ins(%x : memref<8x64xf32, #tile.scope<shared>>) outs(%y : memref<8x64xf32, #tile.scope<fragment>>)
  tile.copy %X to %z : memref<8x64xf32, #hivm.address_space<gm>> to memref<8x64xf32, #tile.scope<shared>>
  return
}
