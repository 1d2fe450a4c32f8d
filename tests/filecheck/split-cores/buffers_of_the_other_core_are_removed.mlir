// RUN: tilelang-npu opt %s -p assign-cores,split-cores | filecheck %s
// The mark of a multi-buffered buffer does not keep it in the function of the core that does not use it.
// CHECK-LABEL: func.func @k_mix_aic
// CHECK-NOT:     address_space<ub>
// CHECK:         hivm.hir.fixpipe
// CHECK-LABEL: func.func @k_mix_aiv
// CHECK-NOT:     address_space<cc>
// CHECK:         annotation.mark
// CHECK-NEXT:    hivm.hir.vrelu
func.func @k(%ffts: i64 {hacc.arg_type = #hacc.arg_type<ffts_base_address>}, %g: memref<16x16xf32, #hivm.address_space<gm>>) attributes {hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>, hivm.func_core_type = #hivm.func_core_type<MIX>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  scf.for %i = %c0 to %c4 step %c1 {
    %c = memref.alloc() : memref<1x1x16x16xf32, #hivm.address_space<cc>>
    annotation.mark %c {hivm.multi_buffer = 2 : i32} : memref<1x1x16x16xf32, #hivm.address_space<cc>>
    %u = memref.alloc() : memref<16x16xf32, #hivm.address_space<ub>>
    annotation.mark %u {hivm.multi_buffer = 2 : i32} : memref<16x16xf32, #hivm.address_space<ub>>
    hivm.hir.fixpipe {dma_mode = #hivm.dma_mode<nz2nd>} ins(%c : memref<1x1x16x16xf32, #hivm.address_space<cc>>) outs(%g : memref<16x16xf32, #hivm.address_space<gm>>)
    hivm.hir.vrelu ins(%u : memref<16x16xf32, #hivm.address_space<ub>>) outs(%u : memref<16x16xf32, #hivm.address_space<ub>>)
  }
  return
}
