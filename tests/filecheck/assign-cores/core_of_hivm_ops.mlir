// RUN: tilelang-npu opt %s -p assign-cores | filecheck %s
// HIVM of other tools: ops determine their core, existing core attributes stay, a custom op states its core, and a function
// of one core is not changed.
// CHECK-LABEL: @both
// CHECK-SAME:  hivm.func_core_type = #hivm.func_core_type<MIX>
// CHECK:       hivm.hir.pipe_barrier[<PIPE_ALL>] {hivm.tcore_type = #hivm.tcore_type<CUBE>}
// CHECK-NEXT:  hivm.hir.pipe_barrier[<PIPE_ALL>] {hivm.tcore_type = #hivm.tcore_type<CUBE_OR_VECTOR>}
// CHECK-NEXT:  hivm.hir.fixpipe
// CHECK-SAME:  hivm.tcore_type = #hivm.tcore_type<CUBE>
// CHECK-NEXT:  hivm.hir.vrelu {hivm.tcore_type = #hivm.tcore_type<VECTOR>}
// CHECK-LABEL: @one
// CHECK-NOT:   hivm.tcore_type
func.func @both(%g: memref<16x16xf32, #hivm.address_space<gm>>) attributes {hacc.entry} {
  %c = memref.alloc() : memref<1x1x16x16xf32, #hivm.address_space<cc>>
  %u = memref.alloc() : memref<16x16xf32, #hivm.address_space<ub>>
  hivm.hir.pipe_barrier[<PIPE_ALL>] {hivm.tcore_type = #hivm.tcore_type<CUBE>}
  hivm.hir.pipe_barrier[<PIPE_ALL>]
  hivm.hir.fixpipe {dma_mode = #hivm.dma_mode<nz2nd>} ins(%c : memref<1x1x16x16xf32, #hivm.address_space<cc>>) outs(%g : memref<16x16xf32, #hivm.address_space<gm>>)
  hivm.hir.vrelu ins(%u : memref<16x16xf32, #hivm.address_space<ub>>) outs(%u : memref<16x16xf32, #hivm.address_space<ub>>)
  return
}
func.func @one(%g: memref<16x16xf32, #hivm.address_space<gm>>) attributes {hacc.entry, hivm.func_core_type = #hivm.func_core_type<AIV>} {
  %u = memref.alloc() : memref<16x16xf32, #hivm.address_space<ub>>
  hivm.hir.vrelu ins(%u : memref<16x16xf32, #hivm.address_space<ub>>) outs(%u : memref<16x16xf32, #hivm.address_space<ub>>)
  return
}
