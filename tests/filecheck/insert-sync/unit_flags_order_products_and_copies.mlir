// RUN: tilelang-npu opt %s -p insert-sync | filecheck %s
// M and FIX pass the blocks of %c to each other by unit flags, and need no event.
// CHECK-LABEL: func.func @k
// CHECK-NOT:   set_flag
// CHECK:       outs(%D
func.func @k(%D: memref<16x16xf32, #hivm.address_space<gm>>, %n: index, %x: memref<1x1x16x16xf16, #hivm.address_space<ca>>, %y: memref<1x1x16x16xf16, #hivm.address_space<cb>>) attributes {hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>, hivm.func_core_type = #hivm.func_core_type<AIC>} {
  %p0 = arith.constant 0 : i64
  %true = arith.constant true
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %c = hivm.hir.pointer_cast(%p0) : memref<1x1x16x16xf32, #hivm.address_space<cc>>
  scf.for %i = %c0 to %n step %c1 {
    hivm.hir.custom {hivm.pipe = #hivm.pipe<PIPE_M>, hivm.tcore_type = #hivm.tcore_type<CUBE>, symbol = "mma", unit_flag_mode = [#hivm.unit_flag<ENABLED_WITH_UPDATE>]} "mma" ins(%x, %y, %true, %c16, %c16, %c16 : memref<1x1x16x16xf16, #hivm.address_space<ca>>, memref<1x1x16x16xf16, #hivm.address_space<cb>>, i1, index, index, index) outs(%c : memref<1x1x16x16xf32, #hivm.address_space<cc>>)
    hivm.hir.fixpipe {dma_mode = #hivm.dma_mode<nz2nd>} ins(%c : memref<1x1x16x16xf32, #hivm.address_space<cc>>) outs(%D : memref<16x16xf32, #hivm.address_space<gm>>) unit_flag_mode([#hivm.unit_flag<ENABLED_WITH_UPDATE>])
  }
  return
}
// The copy without a unit flag waits for an event.
// CHECK-LABEL: func.func @without
// CHECK:       hivm.hir.set_flag[<PIPE_M>, <PIPE_FIX>, <EVENT_ID0>]
// CHECK-NEXT:  hivm.hir.wait_flag[<PIPE_M>, <PIPE_FIX>, <EVENT_ID0>]
// CHECK-NEXT:  hivm.hir.fixpipe
func.func @without(%D: memref<16x16xf32, #hivm.address_space<gm>>, %x: memref<1x1x16x16xf16, #hivm.address_space<ca>>, %y: memref<1x1x16x16xf16, #hivm.address_space<cb>>) attributes {hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>, hivm.func_core_type = #hivm.func_core_type<AIC>} {
  %p0 = arith.constant 0 : i64
  %true = arith.constant true
  %c16 = arith.constant 16 : index
  %c = hivm.hir.pointer_cast(%p0) : memref<1x1x16x16xf32, #hivm.address_space<cc>>
  hivm.hir.custom {hivm.pipe = #hivm.pipe<PIPE_M>, hivm.tcore_type = #hivm.tcore_type<CUBE>, symbol = "mma", unit_flag_mode = [#hivm.unit_flag<ENABLED_WITH_UPDATE>]} "mma" ins(%x, %y, %true, %c16, %c16, %c16 : memref<1x1x16x16xf16, #hivm.address_space<ca>>, memref<1x1x16x16xf16, #hivm.address_space<cb>>, i1, index, index, index) outs(%c : memref<1x1x16x16xf32, #hivm.address_space<cc>>)
  hivm.hir.fixpipe {dma_mode = #hivm.dma_mode<nz2nd>} ins(%c : memref<1x1x16x16xf32, #hivm.address_space<cc>>) outs(%D : memref<16x16xf32, #hivm.address_space<gm>>)
  return
}
