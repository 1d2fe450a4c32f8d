// RUN: tilelang-npu opt %s -p "assign-cores,lower-to-hivm{chip=Ascend910B2}" --verify-diagnostics | filecheck %s
// CHECK: error[T190]: a vector function computes on vector registers, which Ascend910B2 does not have
// CHECK: help: compile for a chip that has them: Ascend910_95
func.func @k() {
  %c1 = arith.constant 1 : index
  tile.launch(%c1) sub_blocks 1 : i64 {
  ^bb0(%cid: index):
    %a = tile.alloc "a" : memref<64xf32, #hivm.address_space<ub>>
    tile.vector_function outs(%a : memref<64xf32, #hivm.address_space<ub>>) {
    ^bb0(%to: memref<64xf32>):
      %c0 = arith.constant 0 : index
      %x = arith.constant dense<1.0> : vector<64xf32>
      vector.store %x, %to[%c0] : memref<64xf32>, vector<64xf32>
    }
  }
  return
}
