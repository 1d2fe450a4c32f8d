// RUN: tilelang-npu opt %s -p assign-cores,cross-sync | filecheck %s
// Two slots are free before each run of the inner loop, in which the Vector core waits for the Cube core. If the loop has no
// iteration, in several runs, the Vector core would set more flags than a counter holds, so it waits for the Cube core
// there, too.
// CHECK:      hivm.hir.sync_block_wait[<VECTOR>, <PIPE_FIX>, <PIPE_S>] flag = [[READY:[0-9]+]]
// CHECK-NEXT: hivm.hir.load
// CHECK-NEXT: hivm.hir.sync_block_set[<VECTOR>, <PIPE_MTE2>, <PIPE_S>] flag
// CHECK-NEXT: }
// CHECK-NEXT: [[NONE:%.*]] = arith.cmpi sle, %much, %c0 : index
// CHECK-NEXT: scf.if [[NONE]] {
// CHECK-NEXT:   hivm.hir.sync_block_set[<CUBE>, <PIPE_FIX>, <PIPE_S>] flag = [[READY]]
// CHECK-NEXT:   hivm.hir.sync_block_wait[<VECTOR>, <PIPE_FIX>, <PIPE_S>] flag = [[READY]]
// CHECK-NEXT: }
// A loop that always runs needs no additional wait.
// CHECK-LABEL: @runs
// CHECK-NOT:  arith.cmpi
func.func @k(%ffts: i64 {hacc.arg_type = #hacc.arg_type<ffts_base_address>}, %lock: memref<?xi8, #hivm.address_space<gm>>, %ws: memref<?xi8, #hivm.address_space<gm>> {hacc.arg_type = #hacc.arg_type<workspace>}, %n: index, %lengths: memref<?xi32, #hivm.address_space<gm>>) attributes {hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>, hivm.func_core_type = #hivm.func_core_type<MIX>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c = memref.alloc() : memref<1x1x16x16xf32, #hivm.address_space<cc>>
  %u = memref.alloc() : memref<16x16xf32, #hivm.address_space<ub>>
  scf.for %t = %c0 to %n step %c1 {
    %said = memref.load %lengths[%t] : memref<?xi32, #hivm.address_space<gm>>
    %much = arith.index_cast %said : i32 to index
    scf.for %i = %c0 to %much step %c1 {
      %w = memref_ext.alloc_workspace() : memref<16x16xf32, #hivm.address_space<gm>>
      annotation.mark %w {hivm.multi_buffer = 2 : i32} : memref<16x16xf32, #hivm.address_space<gm>>
      hivm.hir.fixpipe {dma_mode = #hivm.dma_mode<nz2nd>} ins(%c : memref<1x1x16x16xf32, #hivm.address_space<cc>>) outs(%w : memref<16x16xf32, #hivm.address_space<gm>>)
      hivm.hir.load ins(%w : memref<16x16xf32, #hivm.address_space<gm>>) outs(%u : memref<16x16xf32, #hivm.address_space<ub>>)
    }
  }
  return
}
func.func @runs(%ffts: i64 {hacc.arg_type = #hacc.arg_type<ffts_base_address>}, %lock: memref<?xi8, #hivm.address_space<gm>>, %ws: memref<?xi8, #hivm.address_space<gm>> {hacc.arg_type = #hacc.arg_type<workspace>}, %n: index, %lengths: memref<?xi32, #hivm.address_space<gm>>) attributes {hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>, hivm.func_core_type = #hivm.func_core_type<MIX>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c = memref.alloc() : memref<1x1x16x16xf32, #hivm.address_space<cc>>
  %u = memref.alloc() : memref<16x16xf32, #hivm.address_space<ub>>
  scf.for %t = %c0 to %n step %c1 {
    %said = memref.load %lengths[%t] : memref<?xi32, #hivm.address_space<gm>>
    %much = arith.index_cast %said : i32 to index
    scf.for %i = %c0 to %c4 step %c1 {
      %w = memref_ext.alloc_workspace() : memref<16x16xf32, #hivm.address_space<gm>>
      annotation.mark %w {hivm.multi_buffer = 2 : i32} : memref<16x16xf32, #hivm.address_space<gm>>
      hivm.hir.fixpipe {dma_mode = #hivm.dma_mode<nz2nd>} ins(%c : memref<1x1x16x16xf32, #hivm.address_space<cc>>) outs(%w : memref<16x16xf32, #hivm.address_space<gm>>)
      hivm.hir.load ins(%w : memref<16x16xf32, #hivm.address_space<gm>>) outs(%u : memref<16x16xf32, #hivm.address_space<ub>>)
    }
  }
  return
}
