// RUN: tilelang-npu opt %s -p assign-cores,lower-to-hivm | filecheck %s
// L1 and L0C hold zN fractals; the padding of fractals beyond the matrix is cleared; the gemm gets the real sizes.
// CHECK-DAG:  memref.alloc() : memref<3x2x16x16xf16, #hivm.address_space<cbuf>>
// CHECK-DAG:  memref.alloc() : memref<2x3x16x16xf16, #hivm.address_space<cbuf>>
// CHECK-DAG:  memref.alloc() : memref<2x2x16x16xf32, #hivm.address_space<cc>>
// CHECK:      hivm.hir.nd2nz {dst_continuous} {{.*}} init_out_buffer = true pad_value = %cst : f16
// CHECK:      hivm.hir.mmadL1 ins({{.*}}, %c32, %c40, %c32 :
// CHECK:      hivm.hir.fixpipe {dma_mode = #hivm.dma_mode<nz2nd>, pre_quant = #hivm.fixpipe_pre_quant_mode<F322F16>}
func.func @k(%A: memref<32x40xf16, #hivm.address_space<gm>>, %B: memref<40x32xf16, #hivm.address_space<gm>>, %C: memref<32x32xf16, #hivm.address_space<gm>>) {
  %c1 = arith.constant 1 : index
  %yes = arith.constant true
  tile.launch(%c1) sub_blocks 1 : i64 {
  ^bb0(%blk: index):
    %a = tile.alloc "a" : memref<32x40xf16, #hivm.address_space<cbuf>>
    %b = tile.alloc "b" : memref<40x32xf16, #hivm.address_space<cbuf>>
    %c = tile.alloc "c" : memref<32x32xf32, #hivm.address_space<cc>>
    tile.copy %A to %a : memref<32x40xf16, #hivm.address_space<gm>> to memref<32x40xf16, #hivm.address_space<cbuf>>
    tile.copy %B to %b : memref<40x32xf16, #hivm.address_space<gm>> to memref<40x32xf16, #hivm.address_space<cbuf>>
    tile.gemm %a, %b into %c init %yes : memref<32x40xf16, #hivm.address_space<cbuf>>, memref<40x32xf16, #hivm.address_space<cbuf>> into memref<32x32xf32, #hivm.address_space<cc>>
    tile.copy %c to %C : memref<32x32xf32, #hivm.address_space<cc>> to memref<32x32xf16, #hivm.address_space<gm>>
  }
  return
}
