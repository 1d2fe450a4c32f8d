// RUN: tilelang-npu opt %s -p assign-cores,split-cores | filecheck %s
// An operation of either core goes to the core that T.Scope recorded, and the record is removed.
// CHECK-LABEL: func.func @k_mix_aic
// CHECK:         hivm.hir.pipe_barrier[<PIPE_ALL>]
// CHECK-NOT:     hivm.hir.pipe_barrier
// CHECK-LABEL: func.func @k_mix_aiv
// CHECK-NOT:     hivm.hir.pipe_barrier
// CHECK-NOT:     hivm.tcore_type
// CHECK:         hivm.hir.vrelu
func.func @k(%ffts: i64 {hacc.arg_type = #hacc.arg_type<ffts_base_address>}, %g: memref<16x16xf32, #hivm.address_space<gm>>) attributes {hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>, hivm.func_core_type = #hivm.func_core_type<MIX>} {
  %c = memref.alloc() : memref<1x1x16x16xf32, #hivm.address_space<cc>>
  %u = memref.alloc() : memref<16x16xf32, #hivm.address_space<ub>>
  hivm.hir.pipe_barrier[<PIPE_ALL>] {hivm.tcore_type = #hivm.tcore_type<CUBE>}
  hivm.hir.fixpipe {dma_mode = #hivm.dma_mode<nz2nd>} ins(%c : memref<1x1x16x16xf32, #hivm.address_space<cc>>) outs(%g : memref<16x16xf32, #hivm.address_space<gm>>)
  hivm.hir.vrelu ins(%u : memref<16x16xf32, #hivm.address_space<ub>>) outs(%u : memref<16x16xf32, #hivm.address_space<ub>>)
  return
}
