// RUN: tilelang-npu opt %s -p plan-workspace | filecheck %s
// Two slots of 1024 bytes in each block's part; the iteration selects the slot.
// CHECK:      func.func @k_infer_workspace_shape_function() -> index
// CHECK-NEXT:   arith.constant 2048 : index
// CHECK:      %[[BASE:.*]] = arith.muli %{{.*}}, %c2048
// CHECK-NEXT: %[[RING:.*]] = memref.view %ws[%[[BASE]]][] : {{.*}} to memref<2x256xf32
// CHECK:      scf.for %[[I:.*]] =
// CHECK-NEXT:   %[[TURN:.*]] = arith.remui %[[I]], %c2
// CHECK-NEXT:   %[[OFFSET:.*]] = arith.muli %[[TURN]], %c256
// CHECK-NEXT:   memref.reinterpret_cast %[[RING]] to offset: [%[[OFFSET]]], sizes: [16, 16]
func.func @k(%ffts: i64 {hacc.arg_type = #hacc.arg_type<ffts_base_address>}, %lock: memref<?xi8, #hivm.address_space<gm>>, %ws: memref<?xi8, #hivm.address_space<gm>> {hacc.arg_type = #hacc.arg_type<workspace>}) attributes {hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>, hivm.func_core_type = #hivm.func_core_type<MIX>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %u = memref.alloc() : memref<16x16xf32, #hivm.address_space<ub>>
  scf.for %i = %c0 to %c4 step %c1 {
    %w = memref_ext.alloc_workspace() : memref<16x16xf32, #hivm.address_space<gm>>
    annotation.mark %w {hivm.multi_buffer = 2 : i32} : memref<16x16xf32, #hivm.address_space<gm>>
    hivm.hir.load ins(%w : memref<16x16xf32, #hivm.address_space<gm>>) outs(%u : memref<16x16xf32, #hivm.address_space<ub>>)
  }
  return
}
