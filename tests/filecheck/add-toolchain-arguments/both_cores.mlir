// RUN: tilelang-npu opt %s -p assign-cores,add-toolchain-arguments | filecheck %s
// A kernel of both cores gets its core type, the base address of the flags, and after it the workspace.
// CHECK: func.func @k(%ffts: i64 {hacc.arg_type = #hacc.arg_type<ffts_base_address>}, %workspace: memref<?xi8, #hivm.address_space<gm>> {hacc.arg_type = #hacc.arg_type<workspace>}, %g: memref<16x16xf32
// CHECK-SAME: hivm.func_core_type = #hivm.func_core_type<MIX>
func.func @k(%g: memref<16x16xf32, #hivm.address_space<gm>>) attributes {hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>} {
  %w = memref_ext.alloc_workspace() : memref<16x16xf32, #hivm.address_space<gm>>
  %c = memref.alloc() : memref<1x1x16x16xf32, #hivm.address_space<cc>>
  %u = memref.alloc() : memref<16x16xf32, #hivm.address_space<ub>>
  hivm.hir.fixpipe {dma_mode = #hivm.dma_mode<nz2nd>} ins(%c : memref<1x1x16x16xf32, #hivm.address_space<cc>>) outs(%w : memref<16x16xf32, #hivm.address_space<gm>>)
  hivm.hir.load ins(%w : memref<16x16xf32, #hivm.address_space<gm>>) outs(%u : memref<16x16xf32, #hivm.address_space<ub>>)
  hivm.hir.store ins(%u : memref<16x16xf32, #hivm.address_space<ub>>) outs(%g : memref<16x16xf32, #hivm.address_space<gm>>)
  return
}
