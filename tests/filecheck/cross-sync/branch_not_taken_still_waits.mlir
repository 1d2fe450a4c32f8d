// RUN: tilelang-npu opt %s -p assign-cores,cross-sync | filecheck %s
// RUN: tilelang-npu opt %s -p assign-cores,cross-sync | filecheck %s --check-prefix FEW
// A slot is freed in each iteration, whether the branch is taken or not; in the branch the Vector core waits for the Cube
// core. If the branch is not taken, the Vector core could set more flags than a counter holds, so it waits for the Cube core
// there, too, by the same flag.
// CHECK:      scf.if %go {
// CHECK:        hivm.hir.sync_block_set[<CUBE>, <PIPE_FIX>, <PIPE_S>] flag = [[READY:[0-9]+]]
// CHECK:        hivm.hir.sync_block_wait[<VECTOR>, <PIPE_FIX>, <PIPE_S>] flag = [[READY]]
// CHECK-NEXT: hivm.hir.load
// CHECK-NEXT: }
// CHECK-NEXT: [[NOT:%.*]] = arith.xori %go, %true : i1
// CHECK-NEXT: scf.if [[NOT]] {
// CHECK-NEXT:   hivm.hir.sync_block_set[<CUBE>, <PIPE_FIX>, <PIPE_S>] flag = [[READY]]
// CHECK-NEXT:   hivm.hir.sync_block_wait[<VECTOR>, <PIPE_FIX>, <PIPE_S>] flag = [[READY]]
// CHECK-NEXT: }
// CHECK-NEXT: hivm.hir.sync_block_set[<VECTOR>, <PIPE_MTE2>, <PIPE_S>] flag
// With twelve iterations the counter cannot overflow.
// FEW-LABEL: @few
// FEW-NOT:   arith.xori
func.func @k(%ffts: i64 {hacc.arg_type = #hacc.arg_type<ffts_base_address>}, %lock: memref<?xi8, #hivm.address_space<gm>>, %ws: memref<?xi8, #hivm.address_space<gm>> {hacc.arg_type = #hacc.arg_type<workspace>}, %n: index, %went: memref<?xi1, #hivm.address_space<gm>>) attributes {hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>, hivm.func_core_type = #hivm.func_core_type<MIX>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c12 = arith.constant 12 : index
  %c = memref.alloc() : memref<1x1x16x16xf32, #hivm.address_space<cc>>
  %u = memref.alloc() : memref<16x16xf32, #hivm.address_space<ub>>
  scf.for %i = %c0 to %n step %c1 {
    %w = memref_ext.alloc_workspace() : memref<16x16xf32, #hivm.address_space<gm>>
    annotation.mark %w {hivm.multi_buffer = 2 : i32} : memref<16x16xf32, #hivm.address_space<gm>>
    %go = memref.load %went[%i] : memref<?xi1, #hivm.address_space<gm>>
    scf.if %go {
      hivm.hir.fixpipe {dma_mode = #hivm.dma_mode<nz2nd>} ins(%c : memref<1x1x16x16xf32, #hivm.address_space<cc>>) outs(%w : memref<16x16xf32, #hivm.address_space<gm>>)
      hivm.hir.load ins(%w : memref<16x16xf32, #hivm.address_space<gm>>) outs(%u : memref<16x16xf32, #hivm.address_space<ub>>)
    }
  }
  return
}
func.func @few(%ffts: i64 {hacc.arg_type = #hacc.arg_type<ffts_base_address>}, %lock: memref<?xi8, #hivm.address_space<gm>>, %ws: memref<?xi8, #hivm.address_space<gm>> {hacc.arg_type = #hacc.arg_type<workspace>}, %n: index, %went: memref<?xi1, #hivm.address_space<gm>>) attributes {hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>, hivm.func_core_type = #hivm.func_core_type<MIX>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c12 = arith.constant 12 : index
  %c = memref.alloc() : memref<1x1x16x16xf32, #hivm.address_space<cc>>
  %u = memref.alloc() : memref<16x16xf32, #hivm.address_space<ub>>
  scf.for %i = %c0 to %c12 step %c1 {
    %w = memref_ext.alloc_workspace() : memref<16x16xf32, #hivm.address_space<gm>>
    annotation.mark %w {hivm.multi_buffer = 2 : i32} : memref<16x16xf32, #hivm.address_space<gm>>
    %go = memref.load %went[%i] : memref<?xi1, #hivm.address_space<gm>>
    scf.if %go {
      hivm.hir.fixpipe {dma_mode = #hivm.dma_mode<nz2nd>} ins(%c : memref<1x1x16x16xf32, #hivm.address_space<cc>>) outs(%w : memref<16x16xf32, #hivm.address_space<gm>>)
      hivm.hir.load ins(%w : memref<16x16xf32, #hivm.address_space<gm>>) outs(%u : memref<16x16xf32, #hivm.address_space<ub>>)
    }
  }
  return
}
