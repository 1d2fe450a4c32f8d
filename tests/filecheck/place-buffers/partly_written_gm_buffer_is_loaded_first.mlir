// RUN: tilelang-npu opt %s -p place-buffers | filecheck %s
// An op writes a part of a buffer in GM. The whole buffer is stored back, so it is loaded first.
// CHECK-LABEL: func.func @k
// CHECK:      hivm.hir.load ins(%x : {{.*}}) outs(%u : {{.*}})
// CHECK-NEXT: %[[ROOM:.*]] = memref.alloc() : memref<64xf32, #hivm.address_space<ub>>
// CHECK-NEXT: hivm.hir.load ins(%y : {{.*}}) outs(%[[ROOM]] : memref<64xf32, #hivm.address_space<ub>>)
// CHECK-NEXT: hivm.hir.custom {{.*}}"gather_mask" ins(%u : {{.*}}) outs(%[[ROOM]] : memref<64xf32, #hivm.address_space<ub>>)
// CHECK-NEXT: hivm.hir.store ins(%[[ROOM]] : {{.*}}) outs(%y : {{.*}})
func.func @k(%x: memref<64xf32>, %y: memref<64xf32>) attributes {hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>} {
  %u = memref.alloc() : memref<64xf32>
  memref.copy %x, %u : memref<64xf32> to memref<64xf32>
  hivm.hir.custom {symbol = "gather_mask", hivm.pipe = #hivm.pipe<PIPE_V>, hivm.tcore_type = #hivm.tcore_type<VECTOR>} "gather_mask" ins(%u : memref<64xf32>) outs(%y : memref<64xf32>)
  return
}
