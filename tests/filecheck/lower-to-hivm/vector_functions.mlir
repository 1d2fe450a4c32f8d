// RUN: tilelang-npu opt %s -p "assign-cores,lower-to-hivm{chip=Ascend910_95}" | filecheck %s
// A vector function becomes a function of its own, as AscendNPU-IR outlines them, and a call of it.
// CHECK:      call @k_vf_0(%{{.*}}, %{{.*}}, %n_1) {hivm.vector_function} : (memref<192xf32, #hivm.address_space<ub>>, memref<192xf32, #hivm.address_space<ub>>, index) -> ()
// CHECK:      func.func private @k_vf_0(
// CHECK-SAME: memref<192xf32, #hivm.address_space<ub>> {hivm.memory_effect = #hivm.memory_effect<read>}
// CHECK-SAME: memref<192xf32, #hivm.address_space<ub>> {hivm.memory_effect = #hivm.memory_effect<write>}
// CHECK-SAME: hivm.vector_function
// CHECK-SAME: latency = 700
// CHECK:      %[[M:.*]] = vector.create_mask %{{.*}} : vector<64xi1>
// CHECK-NEXT: %[[X:.*]] = vector.load %{{.*}}[%{{.*}}] : memref<192xf32, #hivm.address_space<ub>>, vector<64xf32>
// CHECK-NEXT: vector.maskedstore %{{.*}}[%{{.*}}], %[[M]], %[[X]]
// CHECK:      return
func.func @k(%n: index) {
  %c1 = arith.constant 1 : index
  tile.launch(%c1) sub_blocks 1 : i64 {
  ^bb0(%cid: index):
    %a = tile.alloc "a" : memref<192xf32, #hivm.address_space<ub>>
    %r = tile.alloc "r" : memref<192xf32, #hivm.address_space<ub>>
    tile.vector_function ins(%a : memref<192xf32, #hivm.address_space<ub>>) outs(%r : memref<192xf32, #hivm.address_space<ub>>) scalars(%n : index) latency 700 : i64 {
    ^bb0(%from: memref<192xf32>, %to: memref<192xf32>, %count: index):
      %c0 = arith.constant 0 : index
      %m = vector.create_mask %count : vector<64xi1>
      %x = vector.load %from[%c0] : memref<192xf32>, vector<64xf32>
      vector.maskedstore %to[%c0], %m, %x : memref<192xf32>, vector<64xi1>, vector<64xf32>
    }
  }
  return
}
