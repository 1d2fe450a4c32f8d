// RUN: tilelang-npu opt %s -p assign-cores,split-cores | filecheck %s
// Only the Vector core can set the variable, from an element in UB: the Cube core has neither the store nor the branches
// that depend on it, and a branch that yields such an element is removed as a whole.
// CHECK-LABEL: func.func @k_mix_aic
// CHECK-NOT:     scf.if
// CHECK-NOT:     memref.store
// CHECK:         hivm.hir.fixpipe
// CHECK-LABEL: func.func @k_mix_aiv
// CHECK:         scf.if
// CHECK:         memref.store
// CHECK:         memref.load
// CHECK:         hivm.hir.vrelu
func.func @k(%ffts: i64 {hacc.arg_type = #hacc.arg_type<ffts_base_address>}, %g: memref<16x16xf32, #hivm.address_space<gm>>, %n: i1) attributes {hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>, hivm.func_core_type = #hivm.func_core_type<MIX>} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %c = memref.alloc() : memref<1x1x16x16xf32, #hivm.address_space<cc>>
  %u = memref.alloc() : memref<16xf32, #hivm.address_space<ub>>
  %v = memref.alloca() : memref<1xf32>
  %found = scf.if %n -> (f32) {
    %element = memref.load %u[%c0] : memref<16xf32, #hivm.address_space<ub>>
    scf.yield %element : f32
  } else {
    scf.yield %zero : f32
  }
  memref.store %found, %v[%c0] : memref<1xf32>
  hivm.hir.fixpipe {dma_mode = #hivm.dma_mode<nz2nd>} ins(%c : memref<1x1x16x16xf32, #hivm.address_space<cc>>) outs(%g : memref<16x16xf32, #hivm.address_space<gm>>)
  %read = memref.load %v[%c0] : memref<1xf32>
  %more = arith.cmpf ogt, %read, %zero : f32
  scf.if %more {
    hivm.hir.vrelu ins(%u : memref<16xf32, #hivm.address_space<ub>>) outs(%u : memref<16xf32, #hivm.address_space<ub>>)
  }
  return
}
