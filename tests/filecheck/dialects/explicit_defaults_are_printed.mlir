// RUN: tilelang-npu opt %s | filecheck %s
// Explicit attributes are printed even if they have the default value. MLIR omits a default only for attributes that have a
// value whether or not it is written, as compare_mode and is_signed.
// CHECK:      hivm.hir.load ins(%a : memref<16xf32>) outs(%b : memref<16xf32>) init_out_buffer = false may_implicit_transpose_with_last_axis = false core_type = <CUBE_OR_VECTOR>
// CHECK-NEXT: hivm.hir.load ins(%a : memref<16xf32>) outs(%b : memref<16xf32>)
// CHECK-NEXT: hivm.hir.vdeinterleave ins(%h : memref<32xf32>) outs(%a, %b : memref<16xf32>, memref<16xf32>) channel_num = 2 index_mode = <ALL_CHANNELS>
// CHECK-NEXT: hivm.hir.vdeinterleave ins(%h : memref<32xf32>) outs(%a, %b : memref<16xf32>, memref<16xf32>)
// CHECK-NEXT: hivm.hir.vshr ins(%i, %i : memref<16xi32>, memref<16xi32>) outs(%i : memref<16xi32>) round : true
// CHECK-NEXT: hivm.hir.vshr ins(%i, %i : memref<16xi32>, memref<16xi32>) outs(%i : memref<16xi32>)
// CHECK-NEXT: hivm.hir.vcmp ins(%a, %a : memref<16xf32>, memref<16xf32>) outs(%c : memref<16xi1>)
// CHECK-NEXT: hivm.hir.sync_block_set[<CUBE>, <PIPE_FIX>, <PIPE_S>] flag = 3 sync_instr_mode = <INTRA_BLOCK_SYNCHRONIZATION>
// CHECK-NEXT: hivm.hir.sync_block_set[<CUBE>, <PIPE_FIX>, <PIPE_S>] flag = 3
// CHECK-NEXT: return
func.func @f(%a: memref<16xf32>, %b: memref<16xf32>, %i: memref<16xi32>, %h: memref<32xf32>, %c: memref<16xi1>) {
  hivm.hir.load ins(%a : memref<16xf32>) outs(%b : memref<16xf32>) init_out_buffer = false may_implicit_transpose_with_last_axis = false core_type = <CUBE_OR_VECTOR>
  hivm.hir.load ins(%a : memref<16xf32>) outs(%b : memref<16xf32>)
  hivm.hir.vdeinterleave ins(%h : memref<32xf32>) outs(%a, %b : memref<16xf32>, memref<16xf32>) channel_num = 2 index_mode = <ALL_CHANNELS>
  hivm.hir.vdeinterleave ins(%h : memref<32xf32>) outs(%a, %b : memref<16xf32>, memref<16xf32>)
  hivm.hir.vshr ins(%i, %i : memref<16xi32>, memref<16xi32>) outs(%i : memref<16xi32>) round : true is_signed : true
  hivm.hir.vshr ins(%i, %i : memref<16xi32>, memref<16xi32>) outs(%i : memref<16xi32>)
  hivm.hir.vcmp ins(%a, %a : memref<16xf32>, memref<16xf32>) outs(%c : memref<16xi1>) compare_mode = <eq>
  hivm.hir.sync_block_set[<CUBE>, <PIPE_FIX>, <PIPE_S>] flag = 3 sync_instr_mode = <INTRA_BLOCK_SYNCHRONIZATION>
  hivm.hir.sync_block_set[<CUBE>, <PIPE_FIX>, <PIPE_S>] flag = 3
  return
}
