// RUN: tilelang-npu opt %s -p split-cores --verify-diagnostics | filecheck %s
// CHECK: error[T294]: hivm.hir.vrelu has no core yet; run assign-cores first
func.func @k(%ffts: i64 {hacc.arg_type = #hacc.arg_type<ffts_base_address>}) attributes {hacc.entry, hivm.func_core_type = #hivm.func_core_type<MIX>} {
  %u = memref.alloc() : memref<16x16xf32, #hivm.address_space<ub>>
  hivm.hir.vrelu ins(%u : memref<16x16xf32, #hivm.address_space<ub>>) outs(%u : memref<16x16xf32, #hivm.address_space<ub>>)
  return
}
