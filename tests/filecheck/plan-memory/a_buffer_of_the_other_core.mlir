// RUN: tilelang-npu opt %s -p "plan-memory{chip=\"Ascend910_95\" synchronise=false}" | filecheck %s
// A memory has one plan for both cores. The Vector core writes %there in L1, and the Cube core writes %result in UB; their
// live ranges overlap those of all buffers of the core that owns the memory.
// CHECK-LABEL: func.func @k_mix_aic
// CHECK-DAG:     [[HERE:%.*]] = arith.constant 0 : i64
// CHECK-DAG:     [[BESIDE:%.*]] = arith.constant 10240 : i64
// CHECK:         %here = hivm.hir.pointer_cast([[HERE]]) : memref<2x2x16x16xf16, #hivm.address_space<cbuf>>
// CHECK:         %result = hivm.hir.pointer_cast([[BESIDE]]) : memref<32x32xf32, #hivm.address_space<ub>>
// CHECK-LABEL: func.func @k_mix_aiv
// CHECK-DAG:     [[X:%.*]] = arith.constant 0 : i64
// CHECK-DAG:     [[Y:%.*]] = arith.constant 4096 : i64
// CHECK-DAG:     [[FIRST:%.*]] = arith.constant 2048 : i64
// CHECK:         %x = hivm.hir.pointer_cast([[X]]) : memref<32x32xf32, #hivm.address_space<ub>>
// CHECK:         %y = hivm.hir.pointer_cast([[Y]]) : memref<32x32xf32, #hivm.address_space<ub>>
// CHECK:         %there = hivm.hir.pointer_cast([[FIRST]], [[Y]]) : memref<2x2x16x16xf16, #hivm.address_space<cbuf>>
module attributes {hacc.target = #hacc.target<"Ascend910_9589">} {
func.func @k_mix_aic(%g: memref<32x32xf16, #hivm.address_space<gm>>) attributes {hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>, hivm.func_core_type = #hivm.func_core_type<AIC>, hivm.part_of_mix, mix_mode = "mix"} {
  %c32 = arith.constant 32 : index
  %true = arith.constant true
  %here = memref.alloc() : memref<2x2x16x16xf16, #hivm.address_space<cbuf>>
  %c = memref.alloc() : memref<2x2x16x16xf32, #hivm.address_space<cc>>
  %result = memref.alloc() : memref<32x32xf32, #hivm.address_space<ub>>
  hivm.hir.nd2nz {dst_continuous} ins(%g : memref<32x32xf16, #hivm.address_space<gm>>) outs(%here : memref<2x2x16x16xf16, #hivm.address_space<cbuf>>)
  hivm.hir.mmadL1 ins(%here, %here, %true, %c32, %c32, %c32 : memref<2x2x16x16xf16, #hivm.address_space<cbuf>>, memref<2x2x16x16xf16, #hivm.address_space<cbuf>>, i1, index, index, index) outs(%c : memref<2x2x16x16xf32, #hivm.address_space<cc>>)
  hivm.hir.fixpipe {dma_mode = #hivm.dma_mode<nz2nd>} ins(%c : memref<2x2x16x16xf32, #hivm.address_space<cc>>) outs(%result : memref<32x32xf32, #hivm.address_space<ub>>)
  return
}
func.func @k_mix_aiv(%g: memref<32x32xf32, #hivm.address_space<gm>>) attributes {hacc.entry, hacc.function_kind = #hacc.function_kind<DEVICE>, hivm.func_core_type = #hivm.func_core_type<AIV>, hivm.part_of_mix, mix_mode = "mix"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %x = memref.alloc() : memref<32x32xf32, #hivm.address_space<ub>>
  %y = memref.alloc() : memref<32x32xf32, #hivm.address_space<ub>>
  hivm.hir.load ins(%g : memref<32x32xf32, #hivm.address_space<gm>>) outs(%x : memref<32x32xf32, #hivm.address_space<ub>>)
  hivm.hir.load ins(%g : memref<32x32xf32, #hivm.address_space<gm>>) outs(%y : memref<32x32xf32, #hivm.address_space<ub>>)
  hivm.hir.vadd ins(%x, %y : memref<32x32xf32, #hivm.address_space<ub>>, memref<32x32xf32, #hivm.address_space<ub>>) outs(%x : memref<32x32xf32, #hivm.address_space<ub>>)
  scf.for %i = %c0 to %c4 step %c1 {
    %there = memref.alloc() : memref<2x2x16x16xf16, #hivm.address_space<cbuf>>
    annotation.mark %there {hivm.multi_buffer = 2 : i32} : memref<2x2x16x16xf16, #hivm.address_space<cbuf>>
    %z = memref.alloc() : memref<2x2x16x16xf16, #hivm.address_space<ub>>
    hivm.hir.copy ins(%z : memref<2x2x16x16xf16, #hivm.address_space<ub>>) outs(%there : memref<2x2x16x16xf16, #hivm.address_space<cbuf>>)
  }
  return
}
}
