// RUN: tilelang-npu opt %s -p assign-cores,split-cores | filecheck %s
// Scalars and control flow stay where they are used; a loop without operations of a core is removed.
// CHECK-LABEL: func.func @k_infer_task_type_function
// CHECK:         arith.constant 31 : i8
// CHECK-LABEL: func.func @k_mix_aic
// CHECK-NOT:     scf.for
// CHECK:         hivm.hir.fixpipe
// CHECK-LABEL: func.func @k_mix_aiv
// CHECK-NOT:     hivm.hir.fixpipe
// CHECK:         scf.for
// CHECK-NEXT:      hivm.hir.vrelu
func.func @k(%ffts: i64 {hacc.arg_type = #hacc.arg_type<ffts_base_address>}, %g: memref<16x16xf32, #hivm.address_space<gm>>) attributes {hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>, hivm.func_core_type = #hivm.func_core_type<MIX>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c = memref.alloc() : memref<1x1x16x16xf32, #hivm.address_space<cc>>
  %u = memref.alloc() : memref<16x16xf32, #hivm.address_space<ub>>
  hivm.hir.fixpipe {dma_mode = #hivm.dma_mode<nz2nd>} ins(%c : memref<1x1x16x16xf32, #hivm.address_space<cc>>) outs(%g : memref<16x16xf32, #hivm.address_space<gm>>)
  scf.for %i = %c0 to %c4 step %c1 {
    hivm.hir.vrelu ins(%u : memref<16x16xf32, #hivm.address_space<ub>>) outs(%u : memref<16x16xf32, #hivm.address_space<ub>>)
  }
  return
}
