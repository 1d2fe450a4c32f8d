// RUN: tilelang-npu opt %s -p expand-composites | filecheck %s
// The absolute values are computed in a temporary, because the source is read after the reduction.
// CHECK:      %[[ABSOLUTE:.*]] = tile.alloc "absolute" {{.*}}memref<8x64xf32, #hivm.address_space<ub>>
// CHECK-NEXT: tile.elementwise "abs" ins(%a {{.*}} outs(%[[ABSOLUTE]]
// CHECK-NEXT: tile.reduce "reduce_max" accumulate ins(%[[ABSOLUTE]] {{.*}} outs(%m
// CHECK-NOT:  absolute
func.func @k() {
  %a = tile.alloc "a" : memref<8x64xf32, #hivm.address_space<ub>>
  %m = tile.alloc "m" : memref<8x1xf32, #hivm.address_space<ub>>
  tile.reduce "reduce_max" absolute accumulate ins(%a : memref<8x64xf32, #hivm.address_space<ub>>) outs(%m : memref<8x1xf32, #hivm.address_space<ub>>) dims = [1]
  return
}
